import { compareResourceVersions } from "../../api/resource_version.ts";

/**
 * One change of an object as a {@linkcode OwnWriteWindow} holds it back.
 *
 * @typeParam S What stands for a state of the object.
 */
export interface HeldEvent<S> {
  readonly type: "added" | "updated";
  /** The resourceVersion of the new state. */
  readonly resourceVersion: string;
  /** Whether it was found by listing, so that changes before may be missing. */
  readonly relist: boolean;
  /** The state before, where it is known. */
  readonly previous: S | undefined;
}

/**
 * What a window lets through: one event that stands for all that was decided,
 * from the oldest state to the newest. Nothing when all of it was our own.
 */
export type Release<S> = Omit<HeldEvent<S>, "resourceVersion"> | undefined;

/** A held event, and what has been found out about it. */
interface Held<S> extends HeldEvent<S> {
  /** How many writes had begun when it came: a later one did not cause it. */
  readonly begun: number;
  isEcho: boolean;
}

/**
 * Tells the echo of our own writes of one object from changes by others.
 *
 * It is open from the start of a write until the write's echo, or the progress
 * of the stream beyond it, was seen. An event that comes while writes are under
 * way may be the echo of any of these, so it is held until they have ended:
 *
 * - an event with the resourceVersion of an own write is an echo, unless it
 *   comes from a relist, which may have skipped a change before it;
 * - every other event is somebody else's;
 * - events decided together are let through as one if any of them is somebody
 *   else's.
 *
 * An event waits only for writes that began before it came, so that a chain of
 * writes that overlap holds nothing back for ever. Deletions are not held:
 * {@linkcode OwnWriteWindow.deleted} clears what they make pointless, and the
 * caller tells them at once.
 *
 * Pure: no clock, no I/O; the caller acts on what comes out.
 *
 * @typeParam S What stands for a state of the object.
 */
export class OwnWriteWindow<S> {
  /** Numbers the writes. */
  #begun = 0;
  /** The writes under way, in the order of their begin. */
  readonly #active: Set<number> = new Set();
  /** The resourceVersions of ended writes whose echo was not seen. */
  #own: string[] = [];
  /** In the order of their arrival. */
  #held: Held<S>[] = [];
  /** The state before the first own write whose echo was not seen. */
  #before: S | undefined;

  /** Whether anything is still to be decided; a closed window can be dropped. */
  get isOpen(): boolean {
    return this.#active.size > 0 || this.#own.length > 0 ||
      this.#held.length > 0;
  }

  /** A write begins; gives what {@linkcode succeed} or {@linkcode fail} take. */
  begin(): number {
    this.#active.add(++this.#begun);
    return this.#begun;
  }

  /**
   * A write was stored by the server.
   *
   * @param write Which one.
   * @param answer Its `resourceVersion`; how far the stream of events had come,
   * `seen`, since an echo up to there has arrived; and the state that the answer
   * replaced in the cache, if it did.
   */
  succeed(
    write: number,
    answer: {
      readonly resourceVersion: string;
      readonly seen: string;
      readonly before?: S | undefined;
    },
  ): Release<S> {
    const { resourceVersion, seen, before } = answer;
    this.#active.delete(write);
    for (const event of this.#held) {
      if (event.resourceVersion === resourceVersion) event.isEcho = true;
    }
    this.#own.push(resourceVersion);
    this.#before ??= before;
    this.progress(seen);
    return this.#decide();
  }

  /** A write failed, changed nothing, or nobody knows. */
  fail(write: number): Release<S> {
    this.#active.delete(write);
    return this.#decide();
  }

  /** An event that changed the cache. */
  event(event: HeldEvent<S>): Release<S> {
    this.#held.push({
      ...event,
      begun: this.#begun,
      isEcho: this.#own.includes(event.resourceVersion),
    });
    return this.#decide();
  }

  /**
   * An event that changed nothing, since an own write with this resourceVersion
   * or a newer one is in the cache. If no own write of this window is, its owner
   * was told of that state before.
   */
  stale(event: Omit<HeldEvent<S>, "previous">): Release<S> {
    const isBehind = this.#own.some((own) =>
      compareResourceVersions(event.resourceVersion, own) <= 0
    );
    return isBehind
      ? this.event({ ...event, previous: this.#before })
      : undefined;
  }

  /** The object is gone: what happened before does not matter any more. */
  deleted(resourceVersion: string): void {
    this.#held = [];
    this.progress(resourceVersion);
  }

  /**
   * The stream has come this far: echoes up to there have been seen, or will
   * never come since the write changed nothing.
   */
  progress(resourceVersion: string): void {
    this.#own = this.#own.filter((own) =>
      compareResourceVersions(own, resourceVersion) > 0
    );
    if (this.#own.length === 0) this.#before = undefined;
  }

  /**
   * The history of the server began anew: its versions mean other states now, so
   * that none tells an echo any more.
   */
  restart(): void {
    this.#own = [];
    this.#before = undefined;
    for (const event of this.#held) event.isEcho = false;
  }

  /**
   * The object is not watched any more. Writes under way stay, since it may be
   * watched again before they end.
   */
  leave(): void {
    this.#held = [];
    this.#own = [];
    this.#before = undefined;
  }

  #decide(): Release<S> {
    const [oldest = Infinity] = this.#active;
    const isHeld = ({ begun }: Held<S>) => begun >= oldest;
    const decided = this.#held.filter((event) => !isHeld(event));
    const [first] = decided;
    if (first === undefined) return undefined;
    this.#held = this.#held.filter(isHeld);
    for (const { resourceVersion } of decided) this.progress(resourceVersion);
    const foreign = decided.some(({ isEcho, relist }) => relist || !isEcho);
    return foreign
      ? {
        type: first.type,
        relist: decided.some(({ relist }) => relist),
        previous: first.previous,
      }
      : undefined;
  }
}
