import { createServer, type Socket } from "node:net";
import { listenOn } from "../../node_http.ts";
import { ChannelStream } from "./channel_stream.ts";
import { textOf } from "../transport/chunk_queue.ts";
import type { StreamConnection } from "../transport/transport.ts";

/** Channel numbers of the data and the error of a forwarded port. */
const CHANNEL = { data: 0, error: 1 };

/** Connection to a port of a pod. */
export class PortConnection {
  /**
   * Received data. Throws if the connection fails or the pod refuses it.
   */
  readonly data: AsyncIterable<Uint8Array>;
  readonly #stream: ChannelStream;

  /**
   * Creates a connection; use `client.portForward` instead.
   *
   * @param connection The WebSocket.
   * @param action Description that follows "Cannot" in errors.
   */
  constructor(connection: StreamConnection, action: string) {
    this.#stream = new ChannelStream(connection, Object.values(CHANNEL));
    this.data = this.#read(action);
  }

  /** Sends data to the pod; resolves when the socket has accepted it. */
  async write(data: Uint8Array): Promise<void> {
    await this.#stream.send(CHANNEL.data, data);
  }

  /** Closes the connection; never throws. */
  async close(): Promise<void> {
    await this.#stream.close();
  }

  async *#read(action: string): AsyncGenerator<Uint8Array, void, undefined> {
    const errors = textOf(withoutPort(this.#stream.channel(CHANNEL.error)));
    errors.catch(() => {}); // The data channel reports a failed connection as well.
    try {
      yield* withoutPort(this.#stream.channel(CHANNEL.data));
    } finally {
      await this.#stream.close();
    }
    const text = (await errors).trim();
    if (text === "") return;
    throw new Error(
      `Cannot ${action}: the pod refused the connection: received ${
        JSON.stringify(text.slice(0, 200))
      }`,
    );
  }
}

/** Removes the port number, the first two bytes of every channel. */
async function* withoutPort(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let skip = 2;
  for await (const chunk of chunks) {
    const part = chunk.subarray(skip);
    skip -= chunk.byteLength - part.byteLength;
    if (part.byteLength > 0) yield part;
  }
}

/** Local port that is forwarded to a port of a pod. */
export interface PortListener {
  /** Local port. */
  readonly port: number;
  /** Stops listening and closes all connections. */
  close(): Promise<void>;
}

/** Forwarder to a port of a pod, from `client.portForward`. */
export class PortForward {
  readonly #open: () => Promise<PortConnection>;
  readonly #signal: AbortSignal | undefined;

  /**
   * Creates a forwarder; use `client.portForward` instead.
   *
   * @param open Function that opens a connection to the port.
   * @param signal Signal that closes listeners when it aborts.
   */
  constructor(open: () => Promise<PortConnection>, signal?: AbortSignal) {
    this.#open = open;
    this.#signal = signal;
  }

  /** Opens a connection to the port. */
  connect(): Promise<PortConnection> {
    return this.#open();
  }

  /**
   * Listens on a local port and forwards each connection to the pod, until it is
   * closed or the signal of `client.portForward` aborts. A connection ends when the
   * pod ends it; one whose local end has sent everything is closed after a minute
   * without data.
   */
  async listen(options: {
    readonly port?: number | undefined;
    readonly host?: string | undefined;
  } = {}): Promise<PortListener> {
    const { host = "127.0.0.1", port = 0 } = options;
    const sockets = new Set<Socket>();
    // A peer that has sent everything may wait for the response, or be gone.
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => socket.destroy());
      socket.on("end", () => socket.setTimeout(60_000, () => socket.destroy()));
      void this.#join(socket);
    });
    const signal = this.#signal;
    const close = () =>
      new Promise<void>((resolve) => {
        signal?.removeEventListener("abort", close);
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      });
    signal?.throwIfAborted();
    const at = `listen on ${host}:${port}`;
    const listener = {
      port: await listenOn(server, { port, host }, at),
      close,
    };
    signal?.addEventListener("abort", close);
    if (signal?.aborted) {
      await close();
      throw signal.reason;
    }
    return listener;
  }

  async #join(socket: Socket): Promise<void> {
    try {
      const connection = await this.#open();
      // The local peer may have disconnected while the connection was opened.
      if (socket.destroyed) return await connection.close();
      socket.on("close", () => void connection.close());
      const toPod = async () => {
        for await (const chunk of socket) await connection.write(chunk);
      };
      const fromPod = async () => {
        for await (const chunk of connection.data) {
          if (!socket.write(chunk)) await drained(socket);
        }
        // What the local peer still sends has no receiver, as with kubectl.
        socket.end(() => socket.destroy());
      };
      await Promise.all([toPod(), fromPod()]);
    } catch {
      // TCP has no way to report the reason to the local peer.
      socket.destroy();
    }
  }
}

/** Waits until a socket accepts more data or has closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
    if (socket.destroyed) done();
  });
}
