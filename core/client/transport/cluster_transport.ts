import {
  checkClientPair,
  type ClusterConfig,
  type Credential,
  type CredentialSource,
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
import { serverAddress, type TransportOptions } from "./transport_options.ts";
import type { OpenStream } from "./web_socket.ts";

/** Certificates and keys, which may change. */
type Secrets = Pick<
  TransportOptions,
  "certificate" | "certificateAuthority" | "key"
>;

/** Connection pool and the secrets that it was opened with. */
interface Pool {
  readonly secrets: Secrets;
  readonly transport: Promise<HttpTransport>;
  /** Opened transport; undefined until `transport` resolves. */
  opened?: HttpTransport;
}

/**
 * Transport to a configured cluster. It connects with the first request, and
 * opens a new connection pool when the certificate authorities or the client
 * certificate have changed; the old pool closes when its last response is read.
 */
export class ClusterTransport implements Transport {
  readonly #config: ClusterConfig;
  readonly #credentials: CredentialSource;
  /** Origin of the server, for errors: the URL may have a user and a password. */
  readonly #origin: string;
  readonly #streams = new Set<OpenStream>();
  /** Current pool and retired pools, whose responses are still being read. */
  readonly #pools = new Set<Pool>();
  #pool: Pool | undefined;
  #closed = false;

  /**
   * Creates the transport; it connects with the first request.
   *
   * @param config Configuration of the cluster.
   * @param credentials Source of the current client certificate.
   * @throws {TypeError} If the server is not a URL.
   */
  constructor(config: ClusterConfig, credentials: CredentialSource) {
    this.#origin = serverAddress(config.server).origin;
    this.#config = config;
    this.#credentials = credentials;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    while (true) {
      const secrets = this.#secrets(await this.#credentials.current());
      const pool = this.#poolFor(
        secrets instanceof Promise ? await secrets : secrets,
      );
      const transport = pool.opened ?? await pool.transport;
      // A pool that has been retired in the meantime takes no further requests.
      if (pool === this.#pool) return await transport.send(request);
    }
  }

  async connect(request: StreamRequest): Promise<StreamConnection> {
    const secrets = this.#secrets(await this.#credentials.current());
    const options = this.#options(await secrets);
    this.#checkOpen();
    const { openWebSocket } = await import("./web_socket.ts");
    const stream = await openWebSocket(request, options);
    this.#streams.add(stream);
    void stream.ended.then(() => this.#streams.delete(stream));
    if (this.#closed) await stream.abort(closedError(this.#origin));
    return stream;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const reason = closedError(this.#origin);
    await Promise.all([
      ...[...this.#streams].map((stream) => stream.abort(reason)),
      ...[...this.#pools].map((pool) => endPool(pool, "close")),
    ]);
  }

  #secrets({ certificate, key }: Credential): Secrets | Promise<Secrets> {
    const { certificateAuthority } = this.#config;
    return typeof certificateAuthority === "function"
      ? certificateAuthority().then((authority) => ({
        certificateAuthority: authority,
        certificate,
        key,
      }))
      : { certificateAuthority, certificate, key };
  }

  /** Options of a connection; refuses a pair that a runtime could not use. */
  #options(secrets: Secrets): TransportOptions {
    checkClientPair(secrets);
    const { insecureSkipTlsVerify, proxyUrl, server, serverName } =
      this.#config;
    return {
      server,
      serverName,
      insecureSkipTlsVerify,
      proxyUrl,
      ...secrets,
    };
  }

  /** Pool with these secrets: the current one unless they changed. */
  #poolFor(secrets: Secrets): Pool {
    this.#checkOpen();
    const current = this.#pool;
    if (current !== undefined && sameSecrets(current.secrets, secrets)) {
      return current;
    }
    const transport = openHttpTransport(this.#options(secrets));
    const pool: Pool = { secrets, transport };
    transport.then((opened) => pool.opened = opened, () => {
      this.#pools.delete(pool);
      if (this.#pool === pool) this.#pool = undefined;
    });
    this.#pool = pool;
    this.#pools.add(pool);
    if (current !== undefined) void this.#retire(current);
    return pool;
  }

  async #retire(pool: Pool): Promise<void> {
    await endPool(pool, "retire");
    this.#pools.delete(pool);
  }

  #checkOpen(): void {
    if (this.#closed) throw closedError(this.#origin);
  }
}

async function endPool(pool: Pool, how: "close" | "retire"): Promise<void> {
  try {
    await (await pool.transport)[how]();
  } catch {
    // It never opened, or was closed in the meantime.
  }
}

function sameSecrets(a: Secrets, b: Secrets): boolean {
  return a.certificateAuthority === b.certificateAuthority &&
    a.certificate === b.certificate && a.key === b.key;
}
