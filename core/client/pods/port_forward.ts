import { createServer, type Socket } from "node:net";
import { ChannelStream } from "./channel_stream.ts";
import { textOf } from "../transport/chunk_queue.ts";
import type { StreamConnection } from "../transport/transport.ts";

/** The channels of the only port of a connection. */
const CHANNEL = { data: 0, error: 1 };

/** A connection to a port of a pod. */
export class PortConnection {
  /**
   * What the pod sends. Fails if the line breaks or the pod refuses the
   * connection.
   */
  readonly data: AsyncIterable<Uint8Array>;
  readonly #stream: ChannelStream;

  /**
   * Usually had from a client.
   *
   * @param connection The WebSocket.
   * @param action What it is for, to read after "Cannot".
   */
  constructor(connection: StreamConnection, action: string) {
    const stream = new ChannelStream(connection, [CHANNEL.data, CHANNEL.error]);
    this.#stream = stream;
    this.data = this.#read(action);
  }

  /** Sends to the pod; resolves when the socket took it. */
  async write(data: Uint8Array): Promise<void> {
    await this.#stream.send(CHANNEL.data, data);
  }

  /** Ends the connection; never throws. */
  async close(): Promise<void> {
    await this.#stream.close();
  }

  async *#read(action: string): AsyncGenerator<Uint8Array, void, undefined> {
    const errors = textOf(withoutPort(this.#stream.channel(CHANNEL.error)));
    errors.catch(() => {}); // A broken line is told by the data as well.
    try {
      yield* withoutPort(this.#stream.channel(CHANNEL.data));
    } finally {
      await this.#stream.close();
    }
    const text = (await errors).trim();
    if (text === "") return;
    throw new Error(
      `Cannot ${action}: the pod must accept the connection: received ${
        JSON.stringify(text.slice(0, 200))
      }`,
    );
  }
}

/** Every channel begins with the number of its port, in two bytes. */
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

/** Options of {@linkcode PortForward.listen}. */
export interface ListenOptions {
  /**
   * The local port; 0 takes any free one.
   *
   * @default {0}
   */
  readonly port?: number | undefined;
  /**
   * The local address.
   *
   * @default {"127.0.0.1"}
   */
  readonly host?: string | undefined;
}

/** A local port that leads to a port of a pod. */
export interface PortListener {
  /** The local port. */
  readonly port: number;
  /** Ends the listening and all connections. */
  close(): Promise<void>;
}

/** The way to a port of a pod, had from `client.portForward`. */
export class PortForward {
  readonly #open: () => Promise<PortConnection>;

  /**
   * Usually had from a client.
   *
   * @param open Opens a connection to the port.
   */
  constructor(open: () => Promise<PortConnection>) {
    this.#open = open;
  }

  /** Opens one connection to the port. */
  connect(): Promise<PortConnection> {
    return this.#open();
  }

  /** Listens on a local port, each connection to which becomes one to the pod. */
  async listen(options: ListenOptions = {}): Promise<PortListener> {
    const { host = "127.0.0.1", port = 0 } = options;
    const sockets = new Set<Socket>();
    // A peer that has sent everything may still wait for the answer.
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => socket.destroy());
      void this.#join(socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.on("error", reject);
      server.listen(port, host, resolve);
    });
    const address = server.address();
    return {
      port: typeof address === "object" ? address?.port ?? 0 : 0,
      close: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          for (const socket of sockets) socket.destroy();
        }),
    };
  }

  async #join(socket: Socket): Promise<void> {
    try {
      const connection = await this.#open();
      // Who has hung up meanwhile will not do so again.
      if (socket.destroyed) return await connection.close();
      socket.on("close", () => void connection.close());
      await Promise.all([
        toPod(socket, connection),
        fromPod(socket, connection),
      ]);
    } catch {
      // A TCP connection cannot be told why it fails, only that it does.
      socket.destroy();
    }
  }
}

async function toPod(
  socket: Socket,
  connection: PortConnection,
): Promise<void> {
  for await (const chunk of socket) await connection.write(chunk);
}

async function fromPod(
  socket: Socket,
  connection: PortConnection,
): Promise<void> {
  for await (const chunk of connection.data) {
    if (!socket.write(chunk)) await drained(socket);
  }
  socket.end();
}

/** Waits until a socket takes more, or has closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("drain", done);
      socket.off("close", done);
      resolve();
    };
    socket.on("drain", done);
    socket.on("close", done);
    if (socket.destroyed) done();
  });
}
