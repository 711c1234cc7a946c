import { compareResourceVersions } from "../api/resource_version.ts";

/**
 * One change of an object as a {@linkcode OwnWriteWindow} holds it back.
 *
 * @typeParam S What stands for a state of the object.
 */
export interface HeldEvent<S> {
  readonly type: "added" | "updated";
  /** The resourceVersion of the new state. */
  readonly resourceVersion: string;
  /** Whether it was found by listing again, so that changes may be missing. */
  readonly relist: boolean;
  /** The state before, where it is known. */
  readonly previous: S | undefined;
}

/**
 * What a window lets through: one event that stands for all that was decided,
 * from the oldest state to the newest. Nothing when all of it was our own.
 */
export type Release<S> = Omit<HeldEvent<S>, "resourceVersion"> | undefined;

/**
 * Tells the echo of our own writes of one object from changes by others.
 *
 * It is open from the start of a write until the write's echo, or the progress
 * of the stream beyond it, was seen. While a write is under way, any event may
 * turn out to be its echo, so events are held; once the answer of the write
 * names its resourceVersion, they are decided:
 *
 * - an event with the resourceVersion of an own write is an echo, unless it
 *   comes from a relist, which may have skipped a change before it;
 * - every other event is somebody else's;
 * - an event older than an own write that has ended is decided even while
 *   further writes are under way, so that a chain of writes holds nothing back
 *   for ever;
 * - events decided together are let through as one if any of them is somebody
 *   else's.
 *
 * Deletions are not held: {@linkcode OwnWriteWindow.deleted} only clears what
 * they make pointless, and the caller tells them at once.
 *
 * Pure: no clock, no I/O; the caller acts on what comes out.
 *
 * @typeParam S What stands for a state of the object.
 */
export class OwnWriteWindow<S> {
  /** How many writes are under way. */
  #active = 0;
  /** The resourceVersions of ended writes whose echo was not seen, ascending. */
  #own: string[] = [];
  /** In the order of their arrival. */
  #held: HeldEvent<S>[] = [];
  /** The state before the first own write whose echo was not seen. */
  #before: S | undefined;

  /** Whether anything is still to be decided; a closed window can be dropped. */
  get isOpen(): boolean {
    return this.#active > 0 || this.#own.length > 0 || this.#held.length > 0;
  }

  /** A write begins. */
  begin(): void {
    this.#active++;
  }

  /**
   * A write was stored by the server.
   *
   * @param resourceVersion Of the answer.
   * @param seen How far the stream of events has come; an echo up to there has
   * arrived already.
   * @param before The state that the answer replaced in the cache, if it did.
   */
  succeed(resourceVersion: string, seen: string, before?: S): Release<S> {
    this.#active--;
    this.#own.push(resourceVersion);
    this.#own.sort(compareResourceVersions);
    this.#before ??= before;
    const release = this.#decide();
    this.progress(seen);
    return release;
  }

  /** A write failed, changed nothing, or nobody knows. */
  fail(): Release<S> {
    this.#active--;
    return this.#decide();
  }

  /** An event that changed the cache. */
  event(event: HeldEvent<S>): Release<S> {
    this.#held.push(event);
    return this.#decide();
  }

  /**
   * An event that changed nothing in the cache, since an own write with this
   * resourceVersion or a newer one is there already.
   */
  stale(event: Omit<HeldEvent<S>, "previous">): Release<S> {
    const newest = this.#own.at(-1);
    if (
      newest === undefined ||
      compareResourceVersions(event.resourceVersion, newest) > 0
    ) {
      return undefined;
    }
    return this.event({ ...event, previous: this.#before });
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

  #decide(): Release<S> {
    const limit = this.#active === 0 ? undefined : this.#own.at(-1) ?? "";
    const isDecided = ({ resourceVersion }: HeldEvent<S>) =>
      limit === undefined ||
      compareResourceVersions(resourceVersion, limit) <= 0;
    const decided = this.#held.filter(isDecided);
    const [first] = decided;
    if (first === undefined) return undefined;
    this.#held = this.#held.filter((event) => !isDecided(event));
    const isForeign = (event: HeldEvent<S>) =>
      event.relist || !this.#own.includes(event.resourceVersion);
    const foreign = decided.some(isForeign);
    const newest = decided.map((event) => event.resourceVersion)
      .sort(compareResourceVersions).at(-1) ?? "";
    // An own write that is still to be echoed keeps its place; those up to here
    // have had their echo.
    this.progress(newest);
    if (!foreign) return undefined;
    return {
      type: first.type,
      relist: decided.some((event) => event.relist),
      previous: first.previous,
    };
  }
}
