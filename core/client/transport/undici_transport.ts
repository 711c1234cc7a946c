import { Connector, type OpenedSocket } from "./connect.ts";
import { Exchange } from "./exchange.ts";
import { HttpConnection } from "./http_connection.ts";
import { RequestEncoder } from "./request_encoder.ts";
import { currentRuntime } from "./runtime.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  OpenRequests,
} from "./transport.ts";
import { closedError } from "./transport_error.ts";
import { serverAddress, type TransportOptions } from "./transport_options.ts";

/** Maximum number of connections for short requests. */
const MAX_SHORT = 16;

/**
 * Transport over undici. Short requests use HTTP/1.1 and at most 16 connections, the
 * one that was used last first; further requests wait in order. Long responses, such
 * as watches, are streams of HTTP/2 connections where the server offers them, and
 * have a connection each otherwise.
 */
export class UndiciTransport implements HttpTransport {
  readonly #origin: string;
  readonly #connector: Connector;
  readonly #encoder: RequestEncoder;
  readonly #requests = new OpenRequests();
  readonly #connections = new Set<HttpConnection>();
  /** Idle connections of HTTP/1.1, the most recently used one last. */
  readonly #idle: HttpConnection[] = [];
  /** Number of connections for short requests, with those being opened. */
  #short = 0;
  /** Short requests that wait for a connection, in order. */
  readonly #waiting = new Set<Exchange>();
  /** Connections of HTTP/2 that take streams. */
  readonly #multiplexed = new Set<HttpConnection>();
  /** Streams that wait for an HTTP/2 connection. */
  readonly #streams = new Set<Exchange>();
  /** Function that ends the attempt to open a connection for streams. */
  #cancelOpening: (() => void) | undefined;
  /** Whether the server may offer HTTP/2. */
  #multiplexes: boolean;
  #closed = false;

  /**
   * Creates a transport; it connects with the first request.
   *
   * @throws {TypeError} If the server is not a URL.
   */
  constructor(options: TransportOptions) {
    const { origin, prefix } = serverAddress(options.server);
    this.#origin = origin;
    this.#connector = new Connector(options);
    this.#encoder = new RequestEncoder(prefix);
    // Bun's HTTP/2 loses resets, and stops all streams of a connection for one that
    // nobody reads. Deno's leaves some closed connections open under load.
    this.#multiplexes = this.#connector.isTls && currentRuntime() === "node";
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    const origin = this.#origin;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError(origin));
      if (request.signal?.aborted) return reject(request.signal.reason);
      const requests = this.#requests;
      const options = this.#encoder.encode(request);
      this.#place(
        new Exchange({
          origin,
          request,
          options,
          requests,
          resolve,
          reject,
          onMoved: this.#place,
        }),
      );
    });
  }

  /** Finds a connection for a request, or opens one, or lets it wait. */
  readonly #place = (exchange: Exchange): void => {
    if (this.#closed) return exchange.abort(closedError(this.#origin));
    const { isStream, canMultiplex } = exchange;
    if (canMultiplex && this.#multiplexes) return this.#placeStream(exchange);
    // A reader that borrows has a connection of its own, whose memory it gives back.
    const borrows = exchange.borrows && this.#connector.lends;
    const idle = borrows ? undefined : this.#takeIdle();
    if (idle !== undefined) {
      if (isStream) this.#countShort(idle, false);
      idle.send(exchange);
    } else if (isStream || this.#short < MAX_SHORT) {
      this.#connect(exchange);
    } else this.#wait(this.#waiting, exchange);
  };

  #wait(queue: Set<Exchange>, exchange: Exchange): void {
    queue.add(exchange);
    exchange.waitFor(() => queue.delete(exchange));
  }

  #takeIdle(): HttpConnection | undefined {
    for (;;) {
      const idle = this.#idle.pop();
      if (idle === undefined || idle.hasRoom) return idle;
      idle.close();
    }
  }

  /** Opens a connection of HTTP/1.1 for a request. */
  #connect(exchange: Exchange): void {
    const isShort = !exchange.isStream;
    if (isShort) this.#short++;
    const cancel = this.#connector.open(["http/1.1"], (error, opened) => {
      isOpening = false;
      if (opened === undefined) {
        if (isShort) this.#freeShort();
        return exchange.fail(error);
      }
      const connection = this.#add(opened);
      connection.isShort = isShort;
      connection.send(exchange);
    }, exchange.borrows);
    let isOpening = true;
    exchange.waitFor(() => {
      if (!isOpening) return;
      isOpening = false;
      cancel();
      if (isShort) this.#freeShort();
    });
  }

  /** Finds an HTTP/2 connection for a stream, or opens one. */
  #placeStream(exchange: Exchange): void {
    let isSettling = false;
    for (const connection of this.#multiplexed) {
      if (connection.hasRoom) return connection.send(exchange);
      isSettling ||= connection.isSettling;
    }
    this.#streams.add(exchange);
    exchange.waitFor(() => {
      this.#streams.delete(exchange);
      this.#endOpening();
    });
    if (isSettling || this.#cancelOpening !== undefined) return;
    this.#cancelOpening = this.#connector.open(
      ["h2", "http/1.1"],
      (error, opened) => this.#onStreamsOpened(error, opened),
    );
  }

  #onStreamsOpened(error: unknown, opened: OpenedSocket | undefined): void {
    this.#cancelOpening = undefined;
    if (opened === undefined) {
      for (const exchange of this.#takeStreams()) exchange.fail(error);
      return;
    }
    const connection = this.#add(opened);
    if (connection.isMultiplexed) this.#multiplexed.add(connection);
    else {
      this.#multiplexes = false;
      this.#onRoom(connection);
    }
    this.#placeStreams();
  }

  #takeStreams(): Exchange[] {
    const streams = [...this.#streams];
    this.#streams.clear();
    return streams;
  }

  #placeStreams(): void {
    for (const exchange of this.#takeStreams()) this.#place(exchange);
    this.#endOpening();
  }

  /** Ends the attempt to open a connection that no stream waits for any more. */
  #endOpening(): void {
    if (this.#streams.size > 0) return;
    this.#cancelOpening?.();
    this.#cancelOpening = undefined;
  }

  #add(opened: OpenedSocket): HttpConnection {
    const connection = new HttpConnection(this.#origin, opened, this.#events);
    this.#connections.add(connection);
    return connection;
  }

  readonly #events = {
    onRoom: (connection: HttpConnection) => this.#onRoom(connection),
    onGone: (connection: HttpConnection) => this.#onGone(connection),
  };

  #onRoom(connection: HttpConnection): void {
    if (this.#closed) return connection.close();
    if (connection.isMultiplexed) return this.#placeStreams();
    const [next] = this.#waiting;
    if (!connection.isShort) {
      if (this.#short >= MAX_SHORT) return connection.close();
      this.#countShort(connection, true);
    }
    if (next === undefined) this.#idle.push(connection);
    else {
      this.#waiting.delete(next);
      connection.send(next);
    }
  }

  #onGone(connection: HttpConnection): void {
    this.#connections.delete(connection);
    if (this.#multiplexed.delete(connection)) this.#placeStreams();
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#countShort(connection, false);
  }

  #countShort(connection: HttpConnection, isShort: boolean): void {
    if (connection.isShort === isShort) return;
    connection.isShort = isShort;
    if (isShort) this.#short++;
    else this.#freeShort();
  }

  /** Gives the place of a connection for short requests to the next one. */
  #freeShort(): void {
    this.#short--;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#place(next);
  }

  async retire(): Promise<void> {
    await this.#requests.idle();
    await this.close();
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#requests.abortAll(closedError(this.#origin));
    for (const connection of [...this.#connections]) connection.close();
    return Promise.resolve();
  }
}
