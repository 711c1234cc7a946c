import type { IncomingMessage, ServerResponse } from "node:http";
import { hostname } from "node:os";
import { ROTATION_TIMES } from "../admission/certificate_rotation.ts";
import {
  type CertificateSource,
  FileCertificates,
  filesIn,
  ProcessCertificates,
} from "../admission/served_certificates.ts";
import { TlsServer } from "../admission/tls_server.ts";
import type { Timer } from "../clock.ts";
import { replyText } from "../node_http.ts";
import type { MetricsServerSettings } from "./probe_options.ts";
import { RequestAccess, type RequestAccessDeps } from "./request_access.ts";

/** Interval of checks of the certificate, in milliseconds. */
const CHECK_INTERVAL_MS = 60_000;
/** Time limit for receiving a request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Maximum number of connections; further ones are closed at once. */
const MAX_CONNECTIONS = 100;

/** Address, certificate and answers of a {@linkcode SecureServer}. */
export interface SecureServerOptions extends RequestAccessDeps {
  readonly settings: MetricsServerSettings;
  /** Answers a request that is let in. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
}

/**
 * HTTPS server for those whom the API server knows by their bearer token, and who may
 * read the path; see {@linkcode RequestAccess}.
 */
export class SecureServer {
  readonly #options: SecureServerOptions;
  readonly #server: TlsServer;
  readonly #source: CertificateSource;
  #timer: Timer | undefined;

  /** Creates a server that does not listen yet. */
  constructor(options: SecureServerOptions) {
    const { settings, clock, log, handle } = options;
    const { port, host, certificates } = settings;
    const access = new RequestAccess(options);
    this.#options = options;
    this.#source = certificates === "self"
      ? new ProcessCertificates({
        clock,
        hosts: ["localhost", "127.0.0.1", hostname()],
        times: ROTATION_TIMES,
      })
      : new FileCertificates(
        "directory" in certificates
          ? { ...filesIn(certificates.directory), caFile: undefined }
          : certificates,
        { log, subject: "metrics" },
      );
    this.#server = new TlsServer({
      port,
      host,
      action: `serve metrics on ${host}:${port}`,
      requestTimeout: REQUEST_TIMEOUT_MS,
      maxConnections: MAX_CONNECTIONS,
      handle: async (request, response) => {
        const { method = "GET", headers, url } = request;
        const path = URL.parse(url ?? "/", "https://localhost")?.pathname;
        const refusal = await access.refusal({
          method,
          path: path ?? "/",
          authorization: headers.authorization,
        });
        if (refusal === undefined) return handle(request, response);
        const { status, message } = refusal;
        if (status === 401) response.setHeader("www-authenticate", "Bearer");
        if (status === 429) response.setHeader("retry-after", "1");
        replyText(response, status, message);
      },
    });
  }

  /** Port of the server; undefined while it does not listen. */
  get port(): number | undefined {
    return this.#server.port;
  }

  /**
   * Starts to listen.
   *
   * @throws {Error} If the port is in use, or the certificate cannot be read.
   */
  async start(): Promise<void> {
    const { serving } = await this.#source.read(this.#options.signal);
    await this.#server.start(serving);
    this.#renewLater();
  }

  /** Stops listening and breaks all connections. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#server.stop();
  }

  #renewLater(): void {
    const { clock, log, signal } = this.#options;
    if (signal.aborted) return;
    this.#timer = clock.setTimer(() => {
      this.#source.read(signal)
        .then(({ serving }) => this.#server.use(serving))
        .catch((error: unknown) =>
          log.warn("Cannot renew the certificate of the metrics", { error })
        )
        .finally(() => this.#renewLater());
    }, CHECK_INTERVAL_MS);
  }
}
