import type {
  ClusterConfig,
  CredentialSource,
  Impersonation,
} from "../../config/cluster_config.ts";
import { openHttpTransport } from "./open_transport.ts";
import type {
  HttpRequest,
  HttpResponse,
  HttpTransport,
  StreamConnection,
  StreamRequest,
  Transport,
} from "./transport.ts";
import { closedError } from "./transport_error.ts";
import { serverAddress, type TransportSettings } from "./transport_settings.ts";
import type { OpenStream } from "./web_socket.ts";

/** A pool of connections and what it was opened with. */
interface Pool {
  readonly settings: TransportSettings;
  readonly transport: Promise<HttpTransport>;
}

/**
 * The transport to a configured cluster. It opens the first connection when
 * the first request comes, and a new pool when the authorities or the client
 * certificate have changed; the old pool closes once its last answer is read.
 */
export class ClusterTransport implements Transport {
  readonly #config: ClusterConfig;
  readonly #credentials: CredentialSource;
  readonly #streams = new Set<OpenStream>();
  /** The present pool and the retired ones, whose answers are still read. */
  readonly #pools = new Set<Pool>();
  #pool: Pool | undefined;
  #closed = false;

  /**
   * @param config The cluster.
   * @param credentials Gives the client certificate of the moment.
   * @throws {TypeError} If the server is no URL.
   */
  constructor(config: ClusterConfig, credentials: CredentialSource) {
    serverAddress(config.server);
    this.#config = config;
    this.#credentials = credentials;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    while (true) {
      const pool = this.#poolFor(await this.#settings());
      const transport = await pool.transport;
      // A pool that was retired meanwhile takes no more requests.
      if (pool === this.#pool) return await transport.send(request);
    }
  }

  async connect(request: StreamRequest): Promise<StreamConnection> {
    const settings = await this.#settings();
    this.#checkOpen();
    const { openWebSocket } = await import("./web_socket.ts");
    const stream = await openWebSocket(request, settings);
    this.#streams.add(stream);
    void stream.ended.then(() => this.#streams.delete(stream));
    if (this.#closed) await stream.abort(closedError(this.#config.server));
    return stream;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const reason = closedError(this.#config.server);
    await Promise.all([
      ...[...this.#streams].map((stream) => stream.abort(reason)),
      ...[...this.#pools].map(closePool),
    ]);
  }

  async #settings(): Promise<TransportSettings> {
    const { certificateAuthority, proxyUrl, serverName } = this.#config;
    const { certificate, key } = await this.#credentials.current();
    return {
      server: this.#config.server,
      certificateAuthority: typeof certificateAuthority === "function"
        ? await certificateAuthority()
        : certificateAuthority,
      serverName,
      insecureSkipTlsVerify: this.#config.insecureSkipTlsVerify,
      proxyUrl,
      certificate,
      key,
      repeatsHeaders: repeatsHeaders(this.#config.impersonate),
    };
  }

  /** The pool with these settings: the present one unless they changed. */
  #poolFor(settings: TransportSettings): Pool {
    this.#checkOpen();
    const present = this.#pool;
    if (present !== undefined && sameSecrets(present.settings, settings)) {
      return present;
    }
    const pool = { settings, transport: openHttpTransport(settings) };
    this.#pool = pool;
    this.#pools.add(pool);
    if (present !== undefined) void this.#retire(present);
    return pool;
  }

  async #retire(pool: Pool): Promise<void> {
    try {
      await (await pool.transport).retire();
    } catch {
      // It never opened, or was closed meanwhile.
    }
    this.#pools.delete(pool);
  }

  #checkOpen(): void {
    if (this.#closed) throw closedError(this.#config.server);
  }
}

async function closePool(pool: Pool): Promise<void> {
  try {
    await (await pool.transport).close();
  } catch {
    // It never opened: whoever sent a request was told why.
  }
}

function repeatsHeaders(impersonate: Impersonation | undefined): boolean {
  const { groups = [], extra = {} } = impersonate ?? {};
  return [groups, ...Object.values(extra)].some(({ length }) => length > 1);
}

function sameSecrets(a: TransportSettings, b: TransportSettings): boolean {
  return a.certificateAuthority === b.certificateAuthority &&
    a.certificate === b.certificate && a.key === b.key;
}
