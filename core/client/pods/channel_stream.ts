import { ChunkQueue } from "../transport/chunk_queue.ts";
import type { StreamConnection } from "../transport/transport.ts";
import type { OpenStream } from "../transport/web_socket.ts";

/** WebSocket subprotocol that can close one direction (Kubernetes 1.29). */
export const CHANNEL_V5 = "v5.channel.k8s.io";
/** WebSocket subprotocol that cannot close one direction. */
export const CHANNEL_V4 = "v4.channel.k8s.io";

/**
 * Maximum size of the data of a message that is sent, in bytes: API servers and
 * kubelets end a connection whose message has more than 32 MiB.
 */
const MAX_DATA_BYTES = 1 << 20;

/** First byte of a message that closes the channel named in its second byte. */
const CLOSE = 255;

/**
 * Channels: several streams of bytes over one WebSocket. The first byte of each
 * message is the number of its channel.
 *
 * All channels share the connection: while the reader of one channel is slow,
 * the other channels wait as well.
 */
export class ChannelStream {
  /** Promise that settles after the end of the connection and all messages. */
  readonly ended: Promise<void>;
  readonly #connection: StreamConnection;
  readonly #queues: ReadonlyMap<number, ChunkQueue>;
  /** Channels whose reader is slow. */
  readonly #paused = new Set<number>();
  #proceed: (() => void) | undefined;
  /** Whether messages are read while a reader is slow, as the end has come. */
  #released = false;

  /**
   * Starts reading from a WebSocket.
   *
   * @param connection The WebSocket.
   * @param channels Channels to read; messages of other channels are dropped.
   */
  constructor(connection: StreamConnection, channels: readonly number[]) {
    this.#connection = connection;
    this.#queues = new Map(channels.map((channel) => [
      channel,
      new ChunkQueue({
        pause: () => this.#paused.add(channel),
        resume: () => this.#resume(channel),
        leave: () => this.#resume(channel),
      }),
    ]));
    // Nothing follows then, so that no channel waits for the reader of another.
    void (connection as Partial<OpenStream>).ended?.then(() => this.#release());
    this.ended = this.#pump();
    this.ended.catch(() => {}); // The readers receive the error as well.
  }

  /** Returns the data that arrives on a channel. */
  channel(channel: number): AsyncIterable<Uint8Array> {
    const queue = this.#queues.get(channel);
    if (queue !== undefined) return queue;
    throw new RangeError(
      `Cannot read a channel: it must be one of ${
        [...this.#queues.keys()].join(", ")
      }: received ${channel}`,
    );
  }

  /** Sends bytes on a channel; resolves when the socket has accepted them. */
  async send(channel: number, bytes: Uint8Array): Promise<void> {
    const sent: Promise<void>[] = [];
    // All at once: a second call must not come between two parts.
    for (let start = 0; start === 0 || start < bytes.byteLength;) {
      const part = bytes.subarray(start, start += MAX_DATA_BYTES);
      const message = new Uint8Array(part.byteLength + 1);
      message[0] = channel;
      message.set(part, 1);
      sent.push(this.#connection.send(message));
    }
    await Promise.all(sent);
  }

  /**
   * Closes the sending direction of a channel.
   *
   * @throws {Error} If the server does not support it (before Kubernetes 1.29).
   */
  async end(channel: number): Promise<void> {
    const { protocol } = this.#connection;
    if (protocol !== CHANNEL_V5) {
      throw new Error(
        `Cannot end the input: the server must support ${CHANNEL_V5}: received ${protocol}`,
      );
    }
    await this.#connection.send(Uint8Array.of(CLOSE, channel));
  }

  /** Closes the WebSocket; never throws. */
  async close(): Promise<void> {
    this.#release();
    await this.#connection.close();
  }

  /** Reads on: a channel that is not read must not delay the end of the others. */
  #release(): void {
    this.#released = true;
    this.#proceed?.();
  }

  #resume(channel: number): void {
    this.#paused.delete(channel);
    if (this.#paused.size === 0) this.#proceed?.();
  }

  async #pump(): Promise<void> {
    try {
      for await (const message of this.#connection.messages) {
        this.#queues.get(message[0] ?? CLOSE)?.push(message.subarray(1));
        if (this.#paused.size > 0 && !this.#released) {
          await new Promise<void>((resolve) => this.#proceed = resolve);
        }
      }
    } catch (error) {
      for (const queue of this.#queues.values()) queue.fail(error);
      throw error;
    }
    for (const queue of this.#queues.values()) queue.end();
  }
}
