import type { HttpRequest } from "@coracle/operator/client";
import type { VirtualClock } from "./virtual_clock.ts";

/**
 * Number of times that an object is written, and of writes in all, while a
 * virtual clock stands still, beyond which they are endless.
 */
const MAX_WRITES = { object: 1_000, all: 100_000 };

/**
 * Limit of the writes of an operator at one moment of a virtual clock. An
 * operator whose writes cause its own runs would keep the clock where it is, and
 * its test would never end.
 */
export class EndlessRequests {
  readonly #clock: VirtualClock;
  readonly #writes: Map<string, number> = new Map();
  #all = 0;
  #at = -1;
  #error: Error | undefined;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  /**
   * Counts a request that is about to be sent.
   *
   * @throws {Error} If there were too many at this moment.
   */
  count({ method, path }: HttpRequest): void {
    if (method === "GET") return;
    const now = this.#clock.now();
    if (now !== this.#at) {
      this.#writes.clear();
      this.#all = 0;
      this.#at = now;
    }
    const write = `${method} ${path.replace(/\?.*/, "")}`;
    const writes = (this.#writes.get(write) ?? 0) + 1;
    this.#writes.set(write, writes);
    this.#all++;
    // Objects of one kind are created by one path.
    const isEndless = method !== "POST" && writes > MAX_WRITES.object ||
      this.#all > MAX_WRITES.all;
    if (!isEndless) return;
    this.#error ??= new Error(
      `Cannot advance a VirtualClock: the runs of an object follow one another without a pause: the operator sent ${write} ${
        writes - 1
      } times, and ${
        this.#all - 1
      } writes in all, while the clock stood at ${now} ms; writes by ctx trigger no run, but those by ctx.client do`,
    );
    throw this.#error;
  }

  /** Error of the first request too many; undefined if there were not. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** Fails what advances the clock, once there were too many requests. */
  check(): Promise<void> {
    return this.#error === undefined
      ? Promise.resolve()
      : Promise.reject(this.#error);
  }
}
