import type { ResolvedKind } from "../api/kind.ts";
import { isResolved, type Kind, kindText } from "../api/kind.ts";
import type {
  ApplyObject,
  DeepPartial,
  KubernetesObject,
  NewObject,
  ObjectList,
} from "../api/object.ts";
import { ApiError } from "../api/api_error.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { ClientOptions } from "./client_options.ts";
import { Connection } from "./connection.ts";
import type { JsonPatch } from "./json_patch.ts";
import {
  type ApiRequest,
  applyRequest,
  createRequest,
  deleteCollectionRequest,
  deleteRequest,
  getRequest,
  listRequest,
  type ObjectBody,
  patchRequest,
  replaceRequest,
} from "./request.ts";
import type {
  ApplyOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  WatchOptions,
  WriteOptions,
} from "./request_options.ts";
import type { HttpRequest, HttpResponse, Transport } from "./transport.ts";
import type { WatchEvent } from "./watch_event.ts";

const DEFAULT_FIELD_MANAGER = "coracle";
/** How many objects a page of {@linkcode Client.listAll} has. */
const PAGE_SIZE = 500;

/**
 * Reads and writes the objects of one cluster. Objects that it gives are plain
 * and belong to the caller.
 */
export class Client {
  readonly #connection: Connection;
  readonly #fieldManager: string;

  /**
   * Makes a client; nothing is sent before the first call.
   *
   * @param target The cluster.
   * @param options How the client behaves.
   */
  constructor(
    target: { readonly transport: Transport },
    options: ClientOptions = {},
  ) {
    this.#fieldManager = options.fieldManager ?? DEFAULT_FIELD_MANAGER;
    this.#connection = new Connection(target.transport, options);
  }

  /** Reads an object. */
  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T> {
    return await this.#object(
      getRequest(await this.resolve(kind), key, options),
    );
  }

  /** Reads an object; `undefined` when it does not exist. */
  async find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.get(kind, key, options);
    } catch (error) {
      if (ApiError.is(error) && error.isNotFound) return undefined;
      throw error;
    }
  }

  /** Reads one page of objects; all of them when `limit` is absent. */
  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    options: ListOptions = {},
  ): Promise<ObjectList<T>> {
    const resolved = await this.resolve(kind);
    const list = await this.#connection.json(listRequest(resolved, options));
    return list as ObjectList<T>;
  }

  /** Reads all objects, page by page. */
  async *listAll<T extends KubernetesObject>(
    kind: Kind<T>,
    options: ListOptions = {},
  ): AsyncGenerator<T, void, undefined> {
    const { limit = PAGE_SIZE } = options;
    let from = options.continue;
    do {
      const page = await this.list(kind, { ...options, limit, continue: from });
      yield* page.items;
      from = page.metadata.continue;
    } while (from);
  }

  /** Makes an object and gives it as stored. */
  async create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options: WriteOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    return await this.#object(
      createRequest(resolved, object, this.#managed(options)),
    );
  }

  /**
   * Replaces an object and gives it as stored. With its
   * `metadata.resourceVersion` set, it fails with a conflict if somebody
   * changed the object meanwhile.
   */
  async replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    return await this.#object(
      replaceRequest(resolved, object, this.#managed(options)),
    );
  }

  /** Applies fields (server-side apply) and gives the object as stored. */
  async apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ApplyOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    return await this.#object(
      applyRequest(resolved, object as ObjectBody, this.#managed(options)),
    );
  }

  /** Patches an object and gives it as stored. */
  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: DeepPartial<T> | JsonPatch,
    options: PatchOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    return await this.#object(
      patchRequest(resolved, key, body, this.#managed(options)),
    );
  }

  /**
   * Deletes an object. Gives the object while finalizers or its grace period
   * keep it, `undefined` when it is gone.
   */
  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    const resolved = await this.resolve(kind);
    const answer = await this.#object<T>(
      deleteRequest(resolved, key, options),
    );
    return answer.kind === kind.kind ? answer : undefined;
  }

  /** Deletes all selected objects. */
  async deleteCollection<T extends KubernetesObject>(
    kind: Kind<T>,
    options: DeleteCollectionOptions = {},
  ): Promise<void> {
    const resolved = await this.resolve(kind);
    await this.#connection.json(deleteCollectionRequest(resolved, options));
  }

  /**
   * Watches objects until the server ends the stream, the signal aborts or the
   * loop is left. It does not resume by itself: that is an informer's work.
   */
  watch<T extends KubernetesObject>(
    _kind: Kind<T>,
    _options: WatchOptions = {},
  ): AsyncIterable<WatchEvent<T>> {
    throw new Error("Cannot watch: not built: received a call");
  }

  /**
   * Gives the kind with its path, from discovery where the kind does not say it.
   *
   * @throws {ApiError} If the server does not serve the kind; `isNotFound`.
   */
  resolve<T extends KubernetesObject>(
    kind: Kind<T>,
  ): Promise<ResolvedKind<T>> {
    if (isResolved(kind)) return Promise.resolve(kind);
    return Promise.reject(
      new TypeError(`Cannot resolve kind: ${kindText(kind)}`),
    );
  }

  /**
   * Sends any request with the client's credentials and retries, and resolves
   * with its answer, the body unread.
   *
   * @throws {ApiError} If the server says no.
   */
  request(request: HttpRequest | ApiRequest): Promise<HttpResponse> {
    return this.#connection.request(request);
  }

  /** Ends everything that the client has open. Safe to call twice. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  async #object<T extends KubernetesObject>(request: ApiRequest): Promise<T> {
    return await this.#connection.json(request) as T;
  }

  #managed<O extends WriteOptions>(options: O): O {
    return options.fieldManager === undefined
      ? { ...options, fieldManager: this.#fieldManager }
      : options;
  }
}
