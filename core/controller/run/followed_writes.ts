/**
 * Writes of a run that are not awaited. Their failure would otherwise end the
 * process or be lost; here it fails the run.
 *
 * @module
 */
import type { Logger } from "../../logger.ts";

const { then } = Promise.prototype;

/** Names of the writes that failed, by their errors. */
const failed = new WeakMap<object, string>();

/** Name of the write that failed with an error, such as `ctx.apply(Pod)`. */
export function failedWrite(error: unknown): string | undefined {
  return failed.get(Object(error));
}

/** Promise of a write that records whether it is awaited. */
class FollowedWrite<T> extends Promise<T> {
  /** Function that follows the promises derived from this one. */
  follow: (<V>(promise: Promise<V>) => Promise<V>) | undefined;
  /** Whether `then` was called, which `await`, `catch` and `Promise.all` do. */
  isObserved = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isObserved = true;
    const derived = super.then(onFulfilled, onRejected);
    // Without a handler of its own, the error is that of the derived promise.
    return onRejected || !this.follow ? derived : this.follow(derived);
  }

  override finally(onFinally?: (() => void) | null): Promise<T> {
    const derived = super.finally(onFinally);
    return this.follow ? this.follow(derived) : derived;
  }
}

/** Writes of one run, each until it is fulfilled or its error is handled. */
export class FollowedWrites {
  readonly #log: () => Logger;
  readonly #open = new Map<FollowedWrite<unknown>, string>();
  #isOver: boolean;

  /**
   * Creates a list without writes.
   *
   * @param log Logger of the run, read when a write fails that is not awaited.
   * @param isOver Whether the run has ended already.
   */
  constructor(log: () => Logger, isOver: boolean) {
    this.#log = log;
    this.#isOver = isOver;
  }

  /** Follows a write, such as `ctx.apply(Pod)`, and its derived promises. */
  follow<T>(promise: Promise<T>, write: string): Promise<T> {
    const followed = new FollowedWrite<T>((resolve) => resolve(promise));
    followed.follow = (derived) => this.follow(derived, write);
    this.#open.set(followed, write);
    then.call(followed, () => {
      this.#open.delete(followed);
    }, (error) => {
      if (typeof error === "object" && error !== null) failed.set(error, write);
      if (followed.isObserved) this.#open.delete(followed);
      else if (this.#isOver) this.#report("error", write, error);
    });
    return followed;
  }

  /**
   * Ends the run: waits for the writes that the reconciler has not awaited.
   *
   * @returns Undefined if there are none.
   * @throws The error of the first that failed.
   */
  end(): Promise<void> | undefined {
    for (const { isObserved } of this.#open.keys()) {
      if (!isObserved) return this.#settle();
    }
    this.#isOver = true;
    return undefined;
  }

  async #settle(): Promise<void> {
    const errors: unknown[] = [];
    // Writes that begin during the loop are in the iteration, too.
    for (const [followed, write] of this.#open) {
      if (followed.isObserved) continue;
      try {
        await followed;
      } catch (error) {
        this.#report("warn", write, error);
        errors.push(error);
      }
    }
    this.#isOver = true;
    if (errors.length > 0) throw errors[0];
  }

  #report(level: "error" | "warn", write: string, error: unknown): void {
    this.#log()[level](
      `A write failed that nobody waits for: write "await" before ${write}`,
      { error },
    );
  }
}
