import { ChunkQueue } from "../../core/client/transport/chunk_queue.ts";
import type { StreamConnection } from "../../core/client/transport/transport.ts";

/** One end of a WebSocket, whatever carries it. */
export type MessageLine = Pick<
  StreamConnection,
  "messages" | "send" | "close"
>;

/** One end of a line within the process: what it sends the other one reads. */
class LineEnd implements StreamConnection {
  readonly protocol: string;
  readonly messages: ChunkQueue;
  other: LineEnd | undefined;
  /** Pending while the reader of this end is behind. */
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
      throw new Error("Cannot send: the line must be open: received a message");
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

  /** Breaks the line, as a lost connection does. */
  fail(error: unknown): void {
    for (const end of [this, this.other]) end?.messages.fail(error);
    void this.close();
  }

  #proceed(): void {
    this.#caughtUp?.resolve();
    this.#caughtUp = undefined;
  }
}

/** Both ends of a line within the process. */
export interface LinePair {
  /** That of the client. */
  readonly near: StreamConnection;
  /** That of the server. */
  readonly far: MessageLine;
  /** Breaks the line. */
  fail(error: unknown): void;
}

/** A WebSocket without a socket. */
export function linePair(protocol: string): LinePair {
  const near = new LineEnd(protocol);
  const far = new LineEnd(protocol);
  near.other = far;
  far.other = near;
  return { near, far, fail: (error) => near.fail(error) };
}
