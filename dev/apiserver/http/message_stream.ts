import type { StreamConnection } from "@coracle/operator/client";
import { ChunkQueue } from "@coracle/operator/internal";

/** End of a stream of WebSocket messages, over a socket or in process. */
export type MessageStream = Pick<
  StreamConnection,
  "messages" | "send" | "close"
>;

/** End of an in-process stream; the other end reads the messages sent by this one. */
class StreamEnd implements StreamConnection {
  readonly protocol: string;
  readonly messages: ChunkQueue;
  other: StreamEnd | undefined;
  /**
   * Promise that is pending while the reader of this end lags behind; `send` of
   * the other end waits for it.
   */
  #caughtUp: PromiseWithResolvers<void> | undefined;

  constructor(protocol: string) {
    this.protocol = protocol;
    this.messages = new ChunkQueue({
      pause: () => this.#caughtUp = Promise.withResolvers(),
      resume: () => this.#proceed(),
      leave: () => void this.close(),
    });
  }

  async send(message: Uint8Array): Promise<void> {
    const { other } = this;
    if (other === undefined || other.messages.closed) {
      throw new Error("Cannot send a message: the stream is closed");
    }
    other.messages.push(message.slice());
    await other.#caughtUp?.promise;
  }

  close(): Promise<void> {
    const { other } = this;
    this.other = undefined;
    this.messages.end();
    this.#proceed();
    return other?.close() ?? Promise.resolve();
  }

  /** Fails both ends, as a lost connection would. */
  fail(error: unknown): void {
    for (const end of [this, this.other]) end?.messages.fail(error);
    void this.close();
  }

  #proceed(): void {
    this.#caughtUp?.resolve();
    this.#caughtUp = undefined;
  }
}

/** Both ends of an in-process stream. */
export interface StreamPair {
  /** End of the client. */
  readonly near: StreamConnection;
  /** End of the server. */
  readonly far: MessageStream;
  /** Fails both ends, as a lost connection would. */
  fail(error: unknown): void;
}

/** Creates an in-process stream that behaves like a WebSocket connection. */
export function streamPair(protocol: string): StreamPair {
  const near = new StreamEnd(protocol);
  const far = new StreamEnd(protocol);
  near.other = far;
  far.other = near;
  return { near, far, fail: (error) => near.fail(error) };
}
