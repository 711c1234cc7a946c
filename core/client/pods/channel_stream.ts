import { ChunkQueue } from "../transport/chunk_queue.ts";
import type { StreamConnection } from "../transport/transport.ts";

/** The protocol that can close one direction; servers since 1.29 know it. */
export const CHANNEL_V5 = "v5.channel.k8s.io";
/** The same without closing one direction. */
export const CHANNEL_V4 = "v4.channel.k8s.io";

/** A message with this first byte closes the channel that the second names. */
const CLOSE = 255;

/**
 * Several streams of bytes over one WebSocket: the first byte of each message
 * says which one it belongs to.
 *
 * All channels come over the same line. While one waits for its reader, nothing
 * is taken from the line, and so the others wait as well.
 */
export class ChannelStream {
  /** Settles when the line has ended and everything was handed on. */
  readonly ended: Promise<void>;
  readonly #connection: StreamConnection;
  readonly #queues: ReadonlyMap<number, ChunkQueue>;
  /** The channels that wait for their reader. */
  readonly #waiting = new Set<number>();
  #proceed: (() => void) | undefined;
  #closed = false;

  /**
   * @param connection The WebSocket.
   * @param channels The channels that will be read; others are dropped.
   */
  constructor(connection: StreamConnection, channels: readonly number[]) {
    this.#connection = connection;
    this.#queues = new Map(channels.map((channel) => [
      channel,
      new ChunkQueue({
        pause: () => this.#waiting.add(channel),
        resume: () => this.#goOn(channel),
        leave: () => this.#goOn(channel),
      }),
    ]));
    this.ended = this.#pump();
    this.ended.catch(() => {}); // The readers are told as well.
  }

  /** What arrives on a channel. */
  channel(channel: number): AsyncIterable<Uint8Array> {
    const queue = this.#queues.get(channel);
    if (queue !== undefined) return queue;
    throw new RangeError(
      `Cannot read a channel: it must be one of ${
        [...this.#queues.keys()].join(", ")
      }: received ${channel}`,
    );
  }

  /** Sends bytes on a channel; resolves when the socket took them. */
  async send(channel: number, bytes: Uint8Array): Promise<void> {
    const message = new Uint8Array(bytes.byteLength + 1);
    message[0] = channel;
    message.set(bytes, 1);
    await this.#connection.send(message);
  }

  /**
   * Says that nothing more comes on a channel.
   *
   * @throws {Error} If the server is too old to understand it.
   */
  async end(channel: number): Promise<void> {
    const { protocol } = this.#connection;
    if (protocol !== CHANNEL_V5) {
      throw new Error(
        `Cannot end the input: the server must know ${CHANNEL_V5}: received ${protocol}`,
      );
    }
    await this.#connection.send(Uint8Array.of(CLOSE, channel));
  }

  /** Ends the line; never throws. */
  async close(): Promise<void> {
    this.#closed = true;
    // What nobody reads must not keep the others from hearing of the end.
    this.#proceed?.();
    await this.#connection.close();
  }

  #goOn(channel: number): void {
    this.#waiting.delete(channel);
    if (this.#waiting.size === 0) this.#proceed?.();
  }

  async #pump(): Promise<void> {
    try {
      for await (const message of this.#connection.messages) {
        this.#queues.get(message[0] ?? CLOSE)?.push(message.subarray(1));
        if (this.#waiting.size > 0 && !this.#closed) {
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
