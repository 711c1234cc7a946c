import { randomBytes } from "node:crypto";
import {
  type Client,
  type Clock,
  type Logger,
  silentLogger,
  systemClock,
  type Transport,
} from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
  type KeyPair,
} from "@coracle/operator/internal";
import { FaultInjector } from "./faults/fault_injector.ts";
import type { Faults } from "./faults/faults.ts";
import type { ServerRequest, ServerResponse } from "./http/exchange.ts";
import { InProcessTransport } from "./http/in_process_transport.ts";
import { Listener } from "./http/listener.ts";
import { Instance, type ServerPoint } from "./instance.ts";
import { kubeconfigDocument } from "./kubeconfig_document.ts";
import { type Random, seededRandom } from "./random.ts";
import {
  type ApiServerOptions,
  checkServerOptions,
  checkUser,
} from "./server_options.ts";
import type { BuiltinResources, CustomResources } from "./registry.ts";
import {
  accountGroups,
  ADMINISTRATOR,
  bearerToken,
  completed,
  serviceAccountOf,
  type User,
} from "./request/user.ts";
import {
  FileJournal,
  type JournalContent,
  lockJournal,
  readJournal,
  type ServerContent,
} from "./storage/file_journal.ts";
import type { Store } from "./storage/store.ts";

/** Modules of a server that are slow to load; loaded once. */
interface Kinds {
  readonly builtin: BuiltinResources;
  readonly crd: CustomResources;
  readonly Client: typeof Client;
}

/** Store of a server, for tools of this project; undefined while the server is down. */
export let storeOf: (server: ApiServer) => Store | undefined;

/**
 * Starts a server with objects in memory, for tools of this project.
 *
 * @param content Objects in the storage versions of their kinds.
 */
export let startWith: (
  options: ApiServerOptions,
  content: ServerContent,
) => Promise<ApiServer>;

/** State of a server that runs, for tools of this project. */
export let pointOf: (server: ApiServer) => ServerPoint | undefined;

/** Starts a server that goes on from a state of another one, for tools of this project. */
export let startAt: (
  options: ApiServerOptions,
  point: ServerPoint,
) => Promise<ApiServer>;

/** Whether the HTTP/2 of the runtime holds; see {@linkcode ApiServerOptions}. */
const SERVES_HTTP2 = !("Bun" in globalThis || "Deno" in globalThis);

/**
 * Kubernetes API server in the current process. It answers as kube-apiserver
 * 1.37 does, with the controllers of every cluster (garbage collection,
 * namespaces, custom resource definitions), but does not run pods.
 */
export class ApiServer {
  static {
    storeOf = (server) => server.#instance?.context.store;
    startWith = (options, content) => ApiServer.#start(options, { content });
    pointOf = (server) => server.#instance?.point();
    startAt = (options, point) => ApiServer.#start(options, { point });
  }

  readonly #options: ApiServerOptions;
  readonly #kinds: Kinds;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #logger: Logger;
  readonly #transport: InProcessTransport;
  /** All in-process transports, which a stop closes. */
  readonly #transports: InProcessTransport[] = [];
  readonly #faults: FaultInjector;
  #instance: Instance | undefined;
  #journal: FileJournal | undefined;
  #unlock: (() => void) | undefined;
  #listener: Listener | undefined;
  #authority: KeyPair | undefined;
  #certificate: { cert: string; key: string; ca: string } | undefined;
  #client: Client | undefined;
  /** Users of the options by token. */
  readonly #users: Map<string, User>;
  #token: string;
  #port: number;

  private constructor(
    options: ApiServerOptions,
    kinds: Kinds,
    random: Random = seededRandom(options.seed),
  ) {
    this.#options = options;
    this.#kinds = kinds;
    this.#clock = options.clock ?? systemClock;
    this.#random = random;
    this.#logger = options.logger ?? silentLogger;
    this.#users = new Map(
      options.users?.map((user) => [user.token, userOf(user)]),
    );
    this.#token = options.token ?? secretToken();
    this.#port = options.port === false ? 0 : options.port ?? 0;
    this.#faults = new FaultInjector({
      clock: this.#clock,
      random: this.#random,
      server: {
        watches: () => this.#instance?.context.watches.all() ?? [],
        authorized: (request) => withToken(request, this.#token),
        compact: () => this.#instance?.context.store.compact(),
        retireConnections: () => this.#listener?.retireConnections(),
        dropConnections: () => this.#dropConnections(),
        setToken: (token) => {
          this.#token = token ?? secretToken();
          return this.#token;
        },
        stop: (keepData) => this.#halt({ keepData }),
        start: (content) => this.#begin(content),
      },
    });
    this.#transport = this.#transportOf(() => this.#token);
  }

  /**
   * Starts a server.
   *
   * @throws {TypeError} If an option is unknown or has another type.
   * @throws {RangeError} If a number is out of range.
   * @throws {Error} If the port is in use, or the data file cannot be read or
   * is used by another server.
   */
  static start(options: ApiServerOptions = {}): Promise<ApiServer> {
    return ApiServer.#start(options);
  }

  static async #start(
    options: ApiServerOptions,
    { content, point }: {
      readonly content?: ServerContent;
      readonly point?: ServerPoint;
    } = {},
  ): Promise<ApiServer> {
    checkServerOptions(options);
    const [builtin, crd, { Client }] = await Promise.all([
      import("./builtin/builtin_definitions.ts"),
      import("./crd/custom_resources.ts"),
      import("@coracle/operator/client"),
    ]);
    const kinds = { builtin, crd, Client };
    const server = new ApiServer(options, kinds, point?.random.copy());
    const { data } = options;
    try {
      if (data !== undefined) server.#unlock = await lockJournal(data);
      await server.#begin(
        data === undefined ? content : readJournal(data),
        point,
      );
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  async #begin(
    content: ServerContent | undefined,
    point?: ServerPoint,
  ): Promise<void> {
    const { establishingDelay = 10, simulate } = this.#options;
    await this.#kinds.crd.prepareObjects(definitionsIn(content));
    const instance = new Instance({
      ...this.#options,
      ...this.#kinds,
      clock: this.#clock,
      random: this.#random,
      logger: this.#logger,
      establishingDelay,
      authenticate: (token) => this.#authenticate(token),
      authority: () => this.#authorityPair(),
      content,
      point,
    });
    try {
      await this.#open(
        instance,
        content !== undefined || Boolean(simulate) ||
          point?.hasControllers === true,
      );
    } catch (error) {
      // Nobody else knows of its timers.
      instance.stop();
      throw error;
    }
    this.#instance = instance;
  }

  /** Starts the controllers of an instance, its journal and the listener. */
  async #open(instance: Instance, hasControllers: boolean): Promise<void> {
    const { data, port } = this.#options;
    if (hasControllers) await instance.startControllers();
    if (data !== undefined) {
      this.#journal = new FileJournal(data, instance.context.store);
      instance.context.store.attach(this.#journal);
    }
    if (port !== false) {
      this.#listener = await Listener.open({
        handle: (request) => this.#handle(request),
        reads: (head) =>
          bearerToken(head.headers.authorization ?? "") === this.#token ||
          this.#instance?.handler.admits(head) === true,
        port: this.#port,
        host: this.#options.host ?? "127.0.0.1",
        tls: this.#options.tls === false
          ? undefined
          : this.#serverCertificate(),
        http2: this.#options.http2 ?? SERVES_HTTP2,
      });
      this.#port = this.#listener.port;
    }
  }

  /**
   * Stops the current instance; returns its objects if a later one needs them,
   * which temporarily doubles their memory.
   */
  async #halt(
    { keepData }: { readonly keepData: boolean },
  ): Promise<JournalContent | undefined> {
    const instance = this.#instance;
    this.#instance = undefined;
    this.#dropInProcess();
    await this.#listener?.close();
    instance?.stop();
    this.#listener = undefined;
    this.#journal?.close();
    this.#journal = undefined;
    return keepData ? instance?.content() : undefined;
  }

  /** Handles a request; returns undefined while the server is down. */
  async #handle(request: ServerRequest): Promise<ServerResponse | undefined> {
    return await this.#faults.around(
      request,
      async (asked) => {
        await this.#kinds.crd.prepareRequest(asked);
        if (this.#instance?.needsControllers(asked)) {
          await this.#instance.startControllers();
        }
        const instance = this.#instance;
        const answer = await instance?.handler.handle(asked);
        // A stop has broken the connection, and may have lost what was written.
        return instance === this.#instance ? answer : undefined;
      },
    );
  }

  #dropConnections(): void {
    this.#listener?.dropConnections();
    this.#dropInProcess();
  }

  #dropInProcess(): void {
    for (const transport of this.#transports) transport.dropConnections();
  }

  /** In-process transport of the user of a token. */
  #transportOf(token: () => string): InProcessTransport {
    const transport = new InProcessTransport((request) =>
      this.#handle(withToken(request, token()))
    );
    this.#transports.push(transport);
    return transport;
  }

  #authenticate(token: string): User | undefined {
    if (token === this.#token) return ADMINISTRATOR;
    return this.#users.get(token);
  }

  #authorityPair(): KeyPair {
    return this.#authority ??= this.#options.authority ??
      createAuthority({ commonName: "coracle" });
  }

  #serverCertificate(): { cert: string; key: string; ca: string } {
    if (this.#certificate === undefined) {
      const { serving, clientAuthorities } = this.#options;
      const ca = clientAuthorities ?? this.certificateAuthority;
      if (serving) {
        const { certificate, key } = serving;
        return this.#certificate = { cert: certificate, key, ca };
      }
      const host = this.#options.host ?? "127.0.0.1";
      const { certificate, key } = issueCertificate(this.#authorityPair(), {
        commonName: "kube-apiserver",
        usage: "server",
        hosts: [...new Set(["localhost", "127.0.0.1", "::1", host])],
      });
      this.#certificate = { cert: certificate, key, ca };
    }
    return this.#certificate;
  }

  /** Certificate of the server's authority, in PEM. */
  get certificateAuthority(): string {
    return this.#authorityPair().certificate;
  }

  /** Bearer token with all rights. */
  get token(): string {
    return this.#token;
  }

  /**
   * URL of the server.
   *
   * @throws {Error} If the server has no port.
   */
  get url(): string {
    if (this.#options.port === false) {
      throw new Error(
        "Cannot get the URL of the server: it was started without a port",
      );
    }
    const scheme = this.#options.tls === false ? "http" : "https";
    const host = this.#options.host ?? "127.0.0.1";
    return `${scheme}://${
      host.includes(":") ? `[${host}]` : host
    }:${this.#port}`;
  }

  /** Kubeconfig for this server, as YAML; contains the token. */
  get kubeconfig(): string {
    return this.#kubeconfig(this.#token);
  }

  /**
   * Kubeconfig with a new token of a user, as YAML.
   *
   * @param user User name, and groups besides `system:authenticated`.
   */
  kubeconfigFor(user: {
    readonly name: string;
    readonly groups?: readonly string[] | undefined;
  }): string {
    return this.#kubeconfig(this.#tokenOf(user));
  }

  #kubeconfig(token: string): string {
    return kubeconfigDocument({
      server: this.url,
      authority: this.#options.tls === false
        ? undefined
        : this.certificateAuthority,
      token,
    });
  }

  #tokenOf(user: Parameters<ApiServer["kubeconfigFor"]>[0]): string {
    checkUser(user, "a kubeconfig or client");
    const token = secretToken();
    this.#users.set(token, userOf(user));
    return token;
  }

  /** In-process transport to the server, with all rights. */
  get transport(): Transport {
    return this.#transport;
  }

  /**
   * Client of the server, over its in-process transport.
   *
   * The client's modules are loaded when the server starts, so that no module
   * of this folder imports them statically.
   */
  get client(): Client {
    return this.#client ??= new this.#kinds.Client({
      transport: this.#transport,
    }, { clock: this.#clock });
  }

  /**
   * Creates a client of the server that acts as a user, over the in-process
   * transport.
   *
   * @param user User name, and groups besides `system:authenticated`.
   */
  clientFor(user: {
    readonly name: string;
    readonly groups?: readonly string[] | undefined;
  }): Client {
    const token = this.#tokenOf(user);
    return new this.#kinds.Client({
      transport: this.#transportOf(() => token),
    }, { clock: this.#clock });
  }

  /** Fault injection of the server. */
  get faults(): Faults {
    return this.#faults;
  }

  /** Counts of watches since the server's start. */
  get watchCounts(): {
    /** Number of open watches. */
    readonly open: number;
    /** Number of watches closed because their client read too slowly. */
    readonly dropped: number;
    /** Number of events sent to watches. */
    readonly events: number;
  } {
    return this.#instance?.context.watches.counts ??
      { open: 0, dropped: 0, events: 0 };
  }

  /** Closes every connection and the port. Safe to call twice. */
  async stop(): Promise<void> {
    const restarting = this.#faults.stop();
    if (restarting !== undefined) await restarting;
    await this.#halt({ keepData: false });
    for (const transport of this.#transports) await transport.close();
    this.#unlock?.();
    this.#unlock = undefined;
  }
}

/** Objects of a content among which all of its definitions are. */
function* definitionsIn(content: ServerContent | undefined) {
  for (const entry of content?.objects ?? []) {
    if (content?.isPart && entry.plural !== "customresourcedefinitions") return;
    yield entry;
  }
}

function userOf(
  { name, groups = [], uid }: {
    readonly name: string;
    readonly groups?: readonly string[] | undefined;
    readonly uid?: string | undefined;
  },
): User {
  const account = serviceAccountOf(name);
  const own = account ? accountGroups(account.namespace) : [];
  return completed({ name, uid, groups: [...own, ...groups] });
}

function secretToken(): string {
  return randomBytes(24).toString("hex");
}

/**
 * Adds the administrator's token to an in-process request without credentials.
 */
function withToken(request: ServerRequest, token: string): ServerRequest {
  return request.headers.authorization === undefined
    ? {
      ...request,
      headers: { ...request.headers, authorization: `Bearer ${token}` },
    }
    : request;
}
