import { setImmediate } from "node:timers";
import { Connector } from "./connect.ts";
import { DedicatedConnection, ReadBuffers } from "./dedicated_connection.ts";
import { PooledConnection } from "./pooled_connection.ts";
import { RequestEncoder } from "./request_encoder.ts";
import { ResponseStream } from "./response_stream.ts";
import { currentRuntime } from "./runtime.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  OpenRequests,
} from "./transport.ts";
import { closedError } from "./transport_error.ts";
import { serverAddress, type TransportOptions } from "./transport_options.ts";

/** Interval of closing connections idle for too long, in milliseconds. */
const SWEEP_INTERVAL_MS = 30_000;

/**
 * Opens a transport over a pool of HTTP/1.1 connections. Long streams use a
 * {@linkcode DedicatedConnection}.
 */
export function openHttpTransport(options: TransportOptions): HttpTransport {
  return new NodeTransport(options);
}

class NodeTransport implements HttpTransport {
  readonly #origin: string;
  readonly #connector: Connector;
  readonly #encoder: RequestEncoder;
  /**
   * Buffers of dedicated connections; `undefined` behind a proxy, and on runtimes
   * whose sockets cannot read into given buffers.
   */
  readonly #buffers: ReadBuffers | undefined;
  readonly #requests = new OpenRequests();
  /** Idle connections, the most recently used one last. */
  #idle: PooledConnection[] = [];
  #sweep: ReturnType<typeof setTimeout> | undefined;
  /** Whether idle connections are about to stop keeping the process alive. */
  #isUnrefDue = false;
  #closed = false;

  constructor(options: TransportOptions) {
    const { origin, prefix } = serverAddress(options.server);
    this.#origin = origin;
    this.#connector = new Connector(options);
    this.#encoder = new RequestEncoder(this.#connector.host, prefix);
    if (options.proxyUrl === undefined && currentRuntime() === "node") {
      this.#buffers = new ReadBuffers();
    }
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    const origin = this.#origin;
    const { beforeSend, signal } = request;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError(origin));
      if (signal?.aborted) return reject(signal.reason);
      const requests = this.#requests;
      const stream = new ResponseStream({
        origin,
        signal,
        beforeSend,
        requests,
        resolve,
        reject,
      });
      try {
        this.#start(request, stream);
      } catch (error) {
        stream.onResponseError(error);
      }
    });
  }

  #start(request: HttpRequest, stream: ResponseStream): void {
    const connector = this.#connector;
    if (this.#buffers !== undefined && isLongRead(request)) {
      const head = this.#encoder.encode(request, { connection: "close" });
      new DedicatedConnection(stream, head, {
        connector,
        buffers: this.#buffers,
      });
      return;
    }
    const bytes = this.#encoder.encode(request);
    for (;;) {
      const idle = this.#idle.pop();
      if (idle === undefined) break;
      if (idle.isUsable) return idle.send(stream, bytes);
      idle.abort();
    }
    const connection = new PooledConnection(this);
    const readsIntoBuffer = this.#buffers !== undefined;
    const cancel = connector.open((error, socket) => {
      if (socket === undefined) return stream.onResponseError(error);
      connection.open(socket);
      connection.send(stream, bytes);
    }, readsIntoBuffer ? connection : undefined);
    stream.onConnecting(cancel);
  }

  idle(connection: PooledConnection): void {
    this.#idle.push(connection);
    if (!this.#isUnrefDue) {
      this.#isUnrefDue = true;
      // The next run mostly uses the connection within this turn.
      setImmediate(this.#unrefIdle);
    }
    if (this.#sweep !== undefined) return;
    this.#sweep = setTimeout(() => this.#closeExpired(), SWEEP_INTERVAL_MS);
    (this.#sweep as { unref?: () => void }).unref?.();
  }

  readonly #unrefIdle = (): void => {
    this.#isUnrefDue = false;
    for (const connection of this.#idle) connection.unref();
  };

  closed(connection: PooledConnection): void {
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #closeExpired(): void {
    this.#sweep = undefined;
    const idle = this.#idle;
    this.#idle = [];
    for (const connection of idle) {
      if (connection.isUsable) this.idle(connection);
      else connection.abort();
    }
  }

  async retire(): Promise<void> {
    await this.#requests.idle();
    await this.close();
  }

  close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#sweep);
    this.#requests.abortAll(closedError(this.#origin));
    const idle = this.#idle;
    this.#idle = [];
    for (const connection of idle) connection.abort();
    return Promise.resolve();
  }
}

/** Whether a request reads a stream whose chunks are borrowed. */
function isLongRead({ body, borrowsChunks, method }: HttpRequest): boolean {
  return borrowsChunks === true && method === "GET" && body === undefined;
}
