import type { StreamConnection } from "@coracle/operator/client";
import { ChunkQueue } from "../../core/client/transport/chunk_queue.ts";

/** In-memory WebSocket whose peer is the test. */
export class ScriptedStream implements StreamConnection {
  readonly protocol: string;
  readonly messages: ChunkQueue;
  /** Sent messages: the first byte and the text that follows. */
  readonly sent: [number, string][] = [];
  /** Whether reading is paused. */
  paused = false;
  closed = false;
  readonly #end = Promise.withResolvers<void>();
  /** Promise of the end of the connection. */
  readonly ended: Promise<void> = this.#end.promise;
  /** Callback for every sent message. */
  onSend: (message: Uint8Array) => void = () => {};

  constructor(protocol = "v5.channel.k8s.io") {
    this.protocol = protocol;
    this.messages = new ChunkQueue({
      pause: () => this.paused = true,
      resume: () => this.paused = false,
      leave: () => this.closed = true,
    }, { highWaterMark: 0 });
  }

  /** Delivers a message. */
  receive(channel: number, body: string | Uint8Array): void {
    const bytes = typeof body === "string"
      ? new TextEncoder().encode(body)
      : body;
    this.messages.push(Uint8Array.of(channel, ...bytes));
  }

  /** Breaks the connection. */
  break(error: unknown): void {
    this.messages.fail(error);
    this.#end.resolve();
  }

  send(message: Uint8Array): Promise<void> {
    const text = new TextDecoder().decode(message.subarray(1));
    this.sent.push([message[0] ?? -1, text]);
    this.onSend(message);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.closed = true;
    this.messages.end();
    this.#end.resolve();
    return Promise.resolve();
  }
}
