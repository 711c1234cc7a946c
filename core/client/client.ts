/**
 * Client: typed requests to an API server, with credentials, retries and a rate
 * limit. `transport/` has the HTTP transports of the runtimes, `pods/` the
 * logs, processes and ports of pods.
 *
 * `request.ts` refuses invalid arguments and builds each request as a plain
 * value; the connection sends it through the middleware to a transport. All
 * failures are `Error`s that start with "Cannot"; responses of the server with
 * a status from 300 are `ApiError`s. The folder does not depend on caches and
 * controllers: it imports only `api`, `json`, `patch`, `config` and the files
 * directly in `core`.
 *
 * @module
 */
import { ApiError } from "../api/api_error.ts";
import { ifFound } from "../api/api_error.ts";
import { isResolved, type Kind, type ResolvedKind } from "../api/kind.ts";
import type {
  ApplyObject,
  DeepPartial,
  KubernetesObject,
  NewObject,
  ObjectList,
  WrittenAs,
} from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import { checkOptions } from "../api/options.ts";
import type { LoadConfigOptions } from "../config/load_config.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";
import { isJsonObject } from "../patch/json_value.ts";
import {
  type ClientOptions,
  clientSettings,
  type ClientTarget,
} from "./client_options.ts";
import { host } from "./host.ts";
import { Connection, openConnection } from "./connection.ts";
import {
  type DiscoveredResource,
  Discovery,
  type ServerVersion,
} from "./discovery.ts";
import type { Middleware } from "./middleware.ts";
import { ContainerProcess } from "./pods/container_process.ts";
import {
  attachRequest,
  type ExecOptions,
  execRequest,
  logLines,
  type LogOptions,
  logRequest,
  type PortForwardOptions,
  portForwardRequest,
} from "./pods/pod_requests.ts";
import { PortConnection, PortForward } from "./pods/port_forward.ts";
import {
  type ApiRequest,
  applyRequest,
  createRequest,
  deleteCollectionRequest,
  deleteRequest,
  describe,
  getRequest,
  listRequest,
  patchRequest,
  replaceRequest,
  watchRequest,
  withDefaults,
  withSubresource,
} from "./request.ts";
import {
  type ApplyOptions,
  type DeleteCollectionOptions,
  type DeleteOptions,
  type GetOptions,
  type ListOptions,
  type PatchOptions,
  REQUEST_RULES,
  type RequestOptions,
  type WatchOptions,
  type WriteOptions,
} from "./request_options.ts";
import { Answer } from "./response.ts";
import {
  ScaleClient,
  StatusClient,
  type SubresourceClientDeps,
  type WriteAction,
  type WriteRequest,
} from "./subresource_clients.ts";
import type { HttpRequest, HttpResponse } from "./transport/transport.ts";
import { type WatchEvent, watchEvents } from "./watch_events.ts";

/**
 * Sends a write of an object and returns its response undecoded. Internal to
 * the framework; the methods of the client decode all responses.
 */
export let sendWrite: <T extends KubernetesObject>(
  client: Client,
  kind: Kind<T>,
  request: (resolved: ResolvedKind) => ApiRequest,
) => Promise<Answer<T>>;

/** Page size of {@linkcode Client.listAll} if `limit` is absent. */
const DEFAULT_PAGE_SIZE = 500;

/**
 * Client of one cluster: reads, writes, lists and watches objects of any kind.
 * Returned objects are plain values that the caller may change.
 *
 * Every method takes a `signal` in its options. A request that the server
 * refuses fails with an {@linkcode ApiError}.
 *
 * @example Create and read an object
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
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
  static {
    sendWrite = async (client, kind, request) => {
      const built = request(await client.resolve(kind));
      const bytes = client.#noting(built, client.#connection.bytes(built));
      return new Answer(built, await bytes);
    };
  }

  /** Client of the `status` subresource. */
  readonly status: StatusClient;
  /** Client of the `scale` subresource. */
  readonly scale: ScaleClient;
  /**
   * Namespace of the kubeconfig context or of the pod; `"default"` if there is
   * none. For command-line tools; requests do not use it as a default.
   */
  readonly namespace: string;
  /**
   * Clock, logger, metrics and random numbers of the client, which are the
   * defaults of its informers.
   */
  readonly defaults: Pick<
    ClientOptions,
    "clock" | "logger" | "metrics" | "random"
  >;
  readonly #connection: Connection;
  readonly #discovery: Discovery;
  readonly #options: ClientOptions;
  readonly #fieldManager: string;

  /**
   * Creates a client. It connects with the first request.
   *
   * @param target Configuration of the cluster, or a transport.
   * @param options Options of the client.
   * @throws {TypeError} If the server is not a URL, or an option is unknown or of
   * the wrong type.
   * @throws {RangeError} If an option is out of range.
   */
  constructor(target: ClientTarget, options: ClientOptions = {}) {
    const settings = clientSettings(target, options);
    // The connection of a derived client has all middleware already.
    const connection =
      "transport" in target && target.transport instanceof Connection
        ? target.transport
        : openConnection(target, settings);
    const { clock, logger, metrics, random } = options;
    this.defaults = { clock, logger, metrics, random };
    this.#options = options;
    this.#fieldManager = settings.fieldManager;
    this.#connection = connection;
    this.#discovery = new Discovery(connection);
    this.namespace = target.namespace ?? "default";
    const deps: SubresourceClientDeps = {
      send: (kind, request) => this.#send(kind, request),
      write: (kind, action, options, request, ...parts) =>
        this.#write(kind, action, options, request, ...parts),
    };
    this.status = new StatusClient(deps);
    this.scale = new ScaleClient(deps);
  }

  /**
   * Creates a client for the cluster that kubectl would use or, in a pod, for
   * the pod's cluster.
   *
   * @param options Kubeconfig and context, and options of the client.
   * @throws {Error} If no usable configuration is found.
   */
  static async load(
    options: LoadConfigOptions & ClientOptions = {},
  ): Promise<Client> {
    const { openTransport, ...own } = host();
    if (openTransport !== undefined) {
      const { clock = own.clock(), random = own.random, logger } = options;
      const { fieldManager, userAgent, retry, rateLimit, metrics } = options;
      return new Client({ transport: openTransport() }, {
        ...{ clock, random, logger, fieldManager, userAgent },
        ...{ retry, rateLimit, metrics },
      });
    }
    const { loadCluster } = await import("../config/load_config.ts");
    const { config, others } = await loadCluster(options);
    return new Client(config, others);
  }

  /**
   * Derives a client that shares this client's connections and options and sends
   * every request through further middleware first. Closing it has no effect;
   * close the original client.
   *
   * @param middleware Middleware; the first entry is the outermost.
   */
  with(middleware: readonly Middleware[]): Client {
    const { namespace } = this;
    const transport = this.#connection.with(middleware);
    return new Client({ transport, namespace }, this.#options);
  }

  /** Reads an object; throws if it does not exist, unlike `find` and `ctx.get`. */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T> {
    return this.#send(kind, (resolved) => getRequest(resolved, key, options));
  }

  /** Reads an object; `undefined` if it does not exist. */
  async find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T | undefined> {
    return await ifFound(this.get(kind, key, options));
  }

  /**
   * Lists one page of objects; all objects if `limit` is absent. The result is
   * `{ items, metadata }`, while `ctx.list` gives an array.
   */
  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    options: ListOptions = {},
  ): Promise<ObjectList<T>> {
    const { metadata = {}, items = [] } = await this.#send<
      Partial<ObjectList<T>>
    >(kind, (resolved) => listRequest(resolved, options));
    return { metadata: metadata ?? {}, items: items ?? [] };
  }

  /**
   * Lists all objects, page by page, in one consistent state. Pages have
   * `limit` objects, 500 by default.
   *
   * @throws {ApiError} With `isGone`, if the server no longer has that state
   * because reading took too long (5 minutes by default).
   */
  async *listAll<T extends KubernetesObject>(
    kind: Kind<T>,
    options: ListOptions = {},
  ): AsyncGenerator<T, void, undefined> {
    checkOptions(options, REQUEST_RULES.list, "listAll");
    let next: ListOptions = {
      ...options,
      limit: options.limit ?? DEFAULT_PAGE_SIZE,
    };
    for (;;) {
      const page = await this.list(kind, next);
      yield* page.items;
      if (!page.metadata.continue) return;
      next = {
        ...next,
        continue: page.metadata.continue,
        // Servers refuse these beside a continue token, which implies them.
        resourceVersion: undefined,
        resourceVersionMatch: undefined,
      };
    }
  }

  /** Creates an object and returns it as stored. */
  create<T extends KubernetesObject, W extends KubernetesObject = T>(
    kind: Kind<T> & WrittenAs<W>,
    object: NewObject<W>,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#write(kind, "create", options, createRequest, object);
  }

  /**
   * Replaces an object and returns it as stored. With
   * `metadata.resourceVersion` set, fails with a conflict if the object has
   * changed since that version.
   */
  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#write(kind, "replace", options, replaceRequest, object);
  }

  /**
   * Applies fields (server-side apply) and returns the object as stored: creates
   * the object or updates the given fields, and removes fields that the same
   * field manager applied before and that are now absent.
   */
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ApplyOptions = {},
  ): Promise<T> {
    return this.#write(kind, "apply", options, applyRequest, object);
  }

  /** Patches an object and returns it as stored. */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: DeepPartial<T> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<T> {
    return this.#write(kind, "patch", options, patchRequest, key, body);
  }

  /**
   * Deletes an object. Returns the object if finalizers or its grace period
   * still keep it, `undefined` if it is removed.
   */
  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    const deleted = await this.#send<T>(
      kind,
      (resolved) => deleteRequest(resolved, key, options),
    );
    return deleted.metadata?.deletionTimestamp === undefined
      ? undefined
      : deleted;
  }

  /** Deletes all selected objects. */
  async deleteCollection(
    kind: Kind,
    options: DeleteCollectionOptions = {},
  ): Promise<void> {
    await this.#send(
      kind,
      (resolved) => deleteCollectionRequest(resolved, options),
    );
  }

  /**
   * Creates a subresource of an object: an `Eviction` of a Pod, a `TokenRequest` of
   * a ServiceAccount, a `Binding`.
   *
   * @param subresource Name in the path: `"eviction"`, `"token"`, `"binding"`.
   * @param body Object with `apiVersion` and `kind`; its `metadata` gets the key.
   * @returns The answer of the server.
   * @throws {ApiError} With `isTooManyRequests`, if a disruption budget forbids an
   * eviction.
   */
  async createSubresource<T extends object = KubernetesObject>(
    kind: Kind,
    key: ObjectKey,
    subresource: string,
    body: Readonly<Record<string, unknown>>,
    options: WriteOptions = {},
  ): Promise<T> {
    describe(kind, key, subresource); // throws if the key is not one
    const write = withSubresource(options, subresource);
    const metadata = { ...Object(body?.["metadata"]), ...key };
    const object = isJsonObject(body) ? { ...body, metadata } : body;
    return await this.#write(kind, "create", write, createRequest, object);
  }

  /**
   * Watches objects until the server ends the stream or the loop is left. Does
   * not resume; an `Informer` does.
   *
   * @throws {ApiError} Also from within the loop, with `isGone` if the resource
   * version is too old.
   * @throws The reason of `signal`, if it aborts.
   */
  watch<T extends KubernetesObject>(
    kind: Kind<T>,
    options?: WatchOptions & { readonly bookmarks?: false | undefined },
  ): AsyncGenerator<
    Exclude<WatchEvent<T>, { readonly type: "BOOKMARK" }>,
    void,
    undefined
  >;
  /** Watches objects; with `bookmarks`, yields BOOKMARK events as well. */
  watch<T extends KubernetesObject>(
    kind: Kind<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined>;
  async *watch<T extends KubernetesObject>(
    kind: Kind<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const request = watchRequest(await this.resolve(kind), options);
    const response = await this.request(request);
    for await (const event of watchEvents<T>(request, response)) {
      if (event.type !== "BOOKMARK" || options.bookmarks) yield event;
    }
  }

  /**
   * Reads the log of a container, line by line. Lines longer than 1 MiB are
   * yielded in parts.
   */
  async *logs(
    key: ObjectKey,
    options: LogOptions = {},
  ): AsyncGenerator<string, void, undefined> {
    const response = await this.#connection.request(logRequest(key, options));
    yield* logLines(response.body);
  }

  /** Starts a command in a container. */
  async exec(key: ObjectKey, options: ExecOptions): Promise<ContainerProcess> {
    const request = execRequest(key, options);
    const stream = await this.#connection.stream(request);
    return new ContainerProcess(stream, request.action);
  }

  /** Attaches to the main process of a container. */
  async attach(
    key: ObjectKey,
    options: Omit<ExecOptions, "command"> = {},
  ): Promise<ContainerProcess> {
    const request = attachRequest(key, options);
    const stream = await this.#connection.stream(request);
    return new ContainerProcess(stream, request.action);
  }

  /**
   * Creates a forwarder to a port of a pod, for single connections or for a
   * local port. It connects only when it is used.
   */
  portForward(key: ObjectKey, options: PortForwardOptions): PortForward {
    const request = portForwardRequest(key, options);
    return new PortForward(async () => {
      const stream = await this.#connection.stream(request);
      return new PortConnection(stream, request.action);
    }, options.signal);
  }

  /**
   * Completes a kind with its plural and scope, from discovery if the kind does
   * not state them.
   *
   * @param options With `fresh`, what discovery has cached is read again (`false`
   * by default).
   * @throws {ApiError} With `isNotFound`, if the server does not serve the kind.
   */
  async resolve<T extends KubernetesObject>(
    kind: Kind<T>,
    options: { readonly fresh?: boolean | undefined } = {},
  ): Promise<ResolvedKind<T>> {
    return isResolved(kind)
      ? kind
      : await this.#discovery.resolve(kind, options.fresh);
  }

  /** Lists all resources that the server serves now (API discovery). */
  resources(): Promise<DiscoveredResource[]> {
    return this.#discovery.resources();
  }

  /** Reads the version of the server. */
  version(options: RequestOptions = {}): Promise<ServerVersion> {
    return this.#discovery.version(options);
  }

  /**
   * Sends any request with the client's credentials and retries, and resolves
   * with its response before the body is read.
   */
  request(request: HttpRequest | ApiRequest): Promise<HttpResponse> {
    return this.#noting(request, this.#connection.request(request));
  }

  /**
   * Closes all connections; requests in progress fail. Safe to call twice.
   */
  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Sends a request about a kind and decodes its response. */
  async #send<T>(
    kind: Kind,
    request: (resolved: ResolvedKind) => ApiRequest,
  ): Promise<T> {
    const built = request(await this.resolve(kind));
    return await this.#noting(built, this.#connection.json(built)) as T;
  }

  /** Notes a path that the server does not serve: discovery may know an old one. */
  async #noting<T>(
    request: Pick<HttpRequest, "path">,
    sent: Promise<T>,
  ): Promise<T> {
    try {
      return await sent;
    } catch (error) {
      // An object that does not exist is named; it is no reason to ask again.
      const isUnserved = ApiError.is(error) && error.isNotFound &&
        error.details.name === undefined;
      if (isUnserved) this.#discovery.forget(request.path);
      throw error;
    }
  }

  /** Sends a write with checked options and the field manager of the client. */
  async #write<T, O extends WriteOptions, Parts extends readonly unknown[]>(
    kind: Kind,
    action: WriteAction,
    options: O,
    request: WriteRequest<O, Parts>,
    ...parts: Parts
  ): Promise<T> {
    const isPlain = action === "create" || action === "replace";
    checkOptions(options, REQUEST_RULES[isPlain ? "write" : action], action);
    const fieldManager = this.#fieldManager;
    const write = withDefaults<WriteOptions>(options, { fieldManager }) as O;
    return await this.#send(
      kind,
      (resolved) => request(resolved, ...parts, write),
    );
  }
}
