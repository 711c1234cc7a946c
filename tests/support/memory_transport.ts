import type {
  HttpRequest,
  HttpResponse,
  Transport,
} from "@coracle/operator/client";
import type { Answer } from "./fake_watch_call.ts";
import type { FakeWatchServer } from "./fake_watch_server.ts";

/** Pace of the answers of a {@linkcode memoryTransport}. */
export interface MemoryPace {
  /** Maximum number of bytes per chunk. */
  readonly pieceSize: number;
  /** Whether each piece takes a turn of the event loop, at the moment. */
  isSlow: boolean;
}

/**
 * A transport that hands requests to a {@linkcode FakeWatchServer} within the
 * process: without sockets, so that thousands of histories run in a second, and
 * with answers cut into small pieces.
 *
 * @param server Who answers.
 * @param pace How the answers arrive; may be changed at any time.
 */
export function memoryTransport(
  server: FakeWatchServer,
  pace: MemoryPace,
): Transport {
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        const answer = new MemoryAnswer({ request, pace, resolve, reject });
        server.receive(request.path, request.headers["accept"] ?? "", answer);
      }),
    close: () => Promise.resolve(),
  };
}

interface MemoryAnswerParts {
  readonly request: HttpRequest;
  readonly pace: MemoryPace;
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: unknown) => void;
}

class MemoryAnswer implements Answer {
  readonly #parts: MemoryAnswerParts;
  readonly #pieces: Uint8Array[] = [];
  readonly #onClose: (() => void)[] = [];
  #wake: () => void = () => {};
  #ended = false;
  #error: unknown;

  constructor(parts: MemoryAnswerParts) {
    this.#parts = parts;
    const { signal } = parts.request;
    signal?.addEventListener("abort", () => this.#close(signal.reason));
  }

  writeHead(status: number, headers: Record<string, string> = {}): void {
    this.#parts.resolve({
      status,
      headers,
      body: this.#read(),
      cancel: () => Promise.resolve(this.#close(new Error("cancelled"))),
    });
  }

  flushHeaders(): void {}

  write(bytes: string | Uint8Array, onWritten?: () => void): void {
    if (this.#ended) return;
    const { pieceSize } = this.#parts.pace;
    const all = typeof bytes === "string"
      ? new TextEncoder().encode(bytes)
      : bytes;
    for (let start = 0; start < all.length; start += pieceSize) {
      const piece = all.subarray(start, start + pieceSize);
      this.#pieces.push(Uint8Array.from(piece));
    }
    this.#wake();
    if (onWritten !== undefined) setImmediate(onWritten);
  }

  end(body?: string): void {
    if (body !== undefined) this.write(body);
    this.#close(undefined);
  }

  reset(): void {
    this.#close(new Error("Cannot read: the connection was reset"));
  }

  onClose(callback: () => void): void {
    this.#onClose.push(callback);
  }

  #close(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (error !== undefined) {
      this.#pieces.length = 0;
      this.#parts.reject(error);
    }
    this.#wake();
    for (const callback of this.#onClose) callback();
  }

  async *#read(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      if (this.#parts.pace.isSlow) await new Promise(setImmediate);
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        yield piece;
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
