import { ApiError } from "../api/api_error.ts";
import { isResolved, type Kind, type ResolvedKind } from "../api/kind.ts";
import type {
  ApplyObject,
  DeepPartial,
  KubernetesObject,
  NewObject,
  ObjectList,
} from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { LoadConfigOptions } from "../config/load_config.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";
import type { ClientOptions } from "./client_options.ts";
import { type ClientTarget, Connection } from "./connection.ts";
import type { ContainerProcess } from "./pods/container_process.ts";
import {
  type DiscoveredResource,
  Discovery,
  type ServerVersion,
} from "./discovery.ts";
import { listPages } from "./list_pages.ts";
import type {
  AttachOptions,
  ExecOptions,
  LogOptions,
  PortForwardOptions,
} from "./pods/pod_requests.ts";
import { PodStreams } from "./pods/pod_streams.ts";
import {
  type ApiRequest,
  applyRequest,
  createRequest,
  deleteCollectionRequest,
  deleteRequest,
  getRequest,
  listRequest,
  patchRequest,
  replaceRequest,
  watchRequest,
  withDefaults,
} from "./request.ts";
import type { PortForward } from "./pods/port_forward.ts";
import type {
  ApplyOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  RequestOptions,
  WatchOptions,
  WriteOptions,
} from "./request_options.ts";
import type { Middleware } from "./middleware.ts";
import {
  type ClientCore,
  ScaleClient,
  StatusClient,
} from "./subresource_clients.ts";
import type { HttpRequest, HttpResponse } from "./transport/transport.ts";
import {
  type WatchChange,
  type WatchEvent,
  watchEvents,
} from "./watch_events.ts";

/**
 * Reads and writes the objects of one cluster. Objects that it gives are plain
 * and belong to the caller.
 *
 * Every call takes a `signal` in its options and fails with an
 * {@linkcode ApiError} when the server says no.
 *
 * @example Make and read an object
 * ```ts
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { Client } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * // With a cluster at hand: const client = await Client.load();
 * const server = await ApiServer.start({ port: false });
 * const client = new Client({ transport: server.transport });
 * const key = { namespace: "default", name: "web" };
 * await client.create(ConfigMap, { metadata: key, data: { color: "blue" } });
 * const found = await client.find(ConfigMap, key);
 * if (found?.data?.["color"] !== "blue") throw new Error("Unexpected data");
 * await server.stop();
 * ```
 */
export class Client {
  /** Reads and writes the status of objects. */
  readonly status: StatusClient;
  /** Reads and writes the number of replicas of objects. */
  readonly scale: ScaleClient;
  /** The namespace that the configuration names, for people's commands. */
  readonly namespace: string;
  /**
   * Clock, logger, metrics and random numbers of the client, as far as they were
   * given; an informer over the client uses them unless it is given its own.
   */
  readonly defaults: Pick<
    ClientOptions,
    "clock" | "logger" | "metrics" | "random"
  >;
  readonly #connection: Connection;
  readonly #discovery: Discovery;
  readonly #fieldManager: string;
  readonly #options: ClientOptions;
  readonly #pods: PodStreams;

  /**
   * Makes a client; nothing is sent before the first call.
   *
   * @param target The cluster, or a transport to one.
   * @param options How the client behaves.
   * @throws {TypeError} If the server is no URL.
   * @throws {RangeError} If an option is out of range.
   */
  constructor(target: ClientTarget, options: ClientOptions = {}) {
    const connection = new Connection(target, options);
    this.#options = options;
    this.#fieldManager = options.fieldManager ?? "coracle";
    this.#connection = connection;
    this.#discovery = new Discovery(connection);
    this.#pods = new PodStreams(connection);
    const { clock, logger, metrics, random } = options;
    this.defaults = { clock, logger, metrics, random };
    this.namespace = "namespace" in target
      ? target.namespace ?? "default"
      : "default";
    const core: ClientCore = {
      resolve: (kind) => this.resolve(kind),
      json: (request) => connection.json(request),
      managed: (write) => this.#managed(write),
    };
    this.status = new StatusClient(core);
    this.scale = new ScaleClient(core);
  }

  /**
   * Makes a client for the cluster that kubectl would use, or for the one that
   * this process runs in.
   *
   * @param options Which kubeconfig and context, and how the client behaves.
   * @throws {Error} If no configuration can be used.
   */
  static async load(
    options: LoadConfigOptions & ClientOptions = {},
  ): Promise<Client> {
    const { loadCluster } = await import("../config/load_config.ts");
    const { config, others } = await loadCluster(options);
    return new Client(config, others);
  }

  /**
   * A client over the same connections that passes every request through
   * middleware first. Closing it closes nothing: that is this client's right.
   *
   * @param middleware The first sees a request first and its answer last.
   */
  with(middleware: readonly Middleware[]): Client {
    const { namespace } = this;
    const transport = this.#connection.shared(middleware);
    // What the first client does with every request is not done twice.
    const { clock, maxAnswerBytes } = this.#options;
    return new Client({ transport, namespace }, {
      clock,
      maxAnswerBytes,
      fieldManager: this.#fieldManager,
      retry: false,
    });
  }

  /** Reads an object. */
  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    return await this.#object(getRequest(resolved, key, options));
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
    const request = listRequest(await this.resolve(kind), options);
    const list = await this.#connection.json(request) as ObjectList<T>;
    return { metadata: list.metadata ?? {}, items: list.items ?? [] };
  }

  /**
   * Reads all objects, page by page, as they were at one moment. If the reading
   * takes so long that the server forgets that moment, the call fails with
   * `isGone`.
   */
  listAll<T extends KubernetesObject>(
    kind: Kind<T>,
    options: ListOptions = {},
  ): AsyncGenerator<T, void, undefined> {
    return listPages((page) => this.list(kind, page), options);
  }

  /** Makes an object and gives it as stored. */
  async create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options: WriteOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    const write = this.#managed(options);
    return await this.#object(createRequest(resolved, object, write));
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
    const write = this.#managed(options);
    return await this.#object(replaceRequest(resolved, object, write));
  }

  /** Applies fields (server-side apply) and gives the object as stored. */
  async apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ApplyOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    const write = this.#managed(options);
    return await this.#object(applyRequest(resolved, object, write));
  }

  /** Patches an object and gives it as stored. */
  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: DeepPartial<T> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<T> {
    const resolved = await this.resolve(kind);
    const write = this.#managed(options);
    return await this.#object(patchRequest(resolved, key, body, write));
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
    const request = deleteRequest(resolved, key, options);
    const answer = await this.#object<T>(request);
    return answer.metadata?.deletionTimestamp === undefined
      ? undefined
      : answer;
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
   * Watches objects until the server ends the stream or the loop is left; an
   * abort is thrown. It does not resume by itself: that is an informer's work.
   *
   * @throws {ApiError} Also in the midst of it; `isGone` means that the resource
   * version is too old.
   */
  watch<T extends KubernetesObject>(
    kind: Kind<T>,
    options?: WatchOptions & { readonly bookmarks?: false | undefined },
  ): AsyncGenerator<WatchChange<T>, void, undefined>;
  /** Watches objects and, with `bookmarks`, how far the watch has come. */
  watch<T extends KubernetesObject>(
    kind: Kind<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined>;
  async *watch<T extends KubernetesObject>(
    kind: Kind<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const request = watchRequest(await this.resolve(kind), options);
    const response = await this.#connection.request(request);
    for await (const event of watchEvents<T>(request, response)) {
      if (event.type !== "BOOKMARK" || options.bookmarks) yield event;
    }
  }

  /** Reads the log of a container of a pod, line by line. */
  logs(
    key: ObjectKey,
    options: LogOptions = {},
  ): AsyncGenerator<string, void, undefined> {
    return this.#pods.logs(key, options);
  }

  /** Runs a command in a container of a pod. */
  exec(key: ObjectKey, options: ExecOptions): Promise<ContainerProcess> {
    return this.#pods.exec(key, options);
  }

  /** Connects to the program that a container of a pod runs. */
  attach(
    key: ObjectKey,
    options: AttachOptions = {},
  ): Promise<ContainerProcess> {
    return this.#pods.attach(key, options);
  }

  /**
   * Gives the way to a port of a pod: connections to it, or a local port that
   * leads to it. Nothing is sent before the first connection.
   */
  portForward(key: ObjectKey, options: PortForwardOptions): PortForward {
    return this.#pods.portForward(key, options);
  }

  /**
   * Gives the kind with its path, from discovery where the kind does not say it.
   *
   * @throws {ApiError} If the server does not serve the kind; `isNotFound`.
   */
  async resolve<T extends KubernetesObject>(
    kind: Kind<T>,
  ): Promise<ResolvedKind<T>> {
    return isResolved(kind) ? kind : await this.#discovery.resolve(kind);
  }

  /** Everything that the server serves at this moment. */
  resources(): Promise<DiscoveredResource[]> {
    return this.#discovery.resources();
  }

  /** What the server says of itself. */
  version(options: RequestOptions = {}): Promise<ServerVersion> {
    return this.#discovery.version(options);
  }

  /**
   * Sends any request with the client's credentials and retries, and resolves
   * with its answer, the body unread.
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
    const fieldManager = this.#fieldManager;
    return withDefaults<WriteOptions>(options, { fieldManager }) as O;
  }
}
