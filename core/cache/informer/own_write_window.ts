import { compareResourceVersions } from "../../api/resource_version.ts";

/**
 * Change of an object that an {@linkcode OwnWriteWindow} may hold back.
 *
 * @typeParam S Representation of a state of the object.
 */
export interface HeldEvent<S> {
  readonly type: "added" | "updated";
  /** ResourceVersion of the new state. */
  readonly resourceVersion: string;
  /**
   * Whether the state is from a list, so that changes before it may be missing.
   */
  readonly relist: boolean;
  /** Previous state, where it is known. */
  readonly previous: S | undefined;
}

/**
 * Event that a window releases: it merges all held events whose origin is known by
 * now, from the oldest state to the newest; undefined if all of them are echoes of
 * own writes.
 */
export type Release<S> = Omit<HeldEvent<S>, "resourceVersion"> | undefined;

/** Event that a window holds back. */
interface Held<S> extends HeldEvent<S> {
  /** Number of writes begun before the event; later ones did not cause it. */
  readonly begun: number;
  isEcho: boolean;
}

/**
 * Time window in which the echoes of own writes of one object, their watch events,
 * are distinguished from changes by other clients (JOSDK's
 * `TemporaryResourceCache`, client-go's `MutationCache`).
 *
 * The window is open from the start of a write until its echo, or the progress of
 * the stream beyond it, has arrived. An event that arrives while writes are under
 * way may be the echo of any of them, so it is held until they have ended:
 *
 * - an event with the resourceVersion of an own write is an echo, unless it is
 *   from a relist, which may hide a change before it;
 * - every other event is a change by another client;
 * - events decided together are released as one if any of them is by another
 *   client.
 *
 * An event waits only for writes that began before it arrived, so that a chain of
 * overlapping writes does not hold it indefinitely. Deletions are not held:
 * {@linkcode OwnWriteWindow.deleted} drops the events before them, and the caller
 * delivers them immediately.
 *
 * Pure: no clock, no I/O; the caller delivers released events.
 *
 * @typeParam S Representation of a state of the object.
 */
export class OwnWriteWindow<S> {
  /** Number of writes that have begun. */
  #begun = 0;
  /** Writes in progress, in the order in which they began. */
  #active: readonly number[] = [];
  /** ResourceVersions of ended writes whose echo has not arrived. */
  #own: readonly string[] = [];
  /** Held events, in the order of their arrival. */
  #held: Held<S>[] = [];
  /** State before the first own write whose echo has not arrived. */
  #before: S | undefined;

  /** Cached state before the first write; a closed window keeps its memory. */
  before: S | undefined;

  /** Whether an event can still be held; a closed window can be used again. */
  get isOpen(): boolean {
    return this.#active.length > 0 || this.#own.length > 0 ||
      this.#held.length > 0;
  }

  /** Oldest event that is held back; undefined if none exists. */
  get oldest(): HeldEvent<S> | undefined {
    return this.#held[0];
  }

  /** Begins a write; returns its number for {@linkcode succeed} or {@linkcode fail}. */
  begin(): number {
    this.#active = [...this.#active, ++this.#begun];
    return this.#begun;
  }

  /**
   * Ends a write that the server stored.
   *
   * @param write Number of the write.
   * @param response Version of the response; the version that the stream had
   * reached (`seen`), since echoes up to it have arrived; and the cached state
   * that the response replaced, if any (`before`).
   */
  succeed(
    write: number,
    response: {
      readonly resourceVersion: string;
      readonly seen: string;
      readonly before?: S | undefined;
    },
  ): Release<S> {
    const { resourceVersion, seen, before } = response;
    this.#active = this.#active.filter((active) => active !== write);
    for (const event of this.#held) {
      if (event.resourceVersion === resourceVersion) event.isEcho = true;
    }
    this.#own = [...this.#own, resourceVersion];
    this.#before ??= before;
    this.progress(seen);
    return this.#decide();
  }

  /** Ends a write that failed, changed nothing, or whose result is unknown. */
  fail(write: number): Release<S> {
    this.#active = this.#active.filter((active) => active !== write);
    return this.#decide();
  }

  /** Records a watch event that changed the cache while own writes are in progress. */
  event(event: HeldEvent<S>): Release<S> {
    this.#held.push({
      ...event,
      begun: this.#begun,
      isEcho: this.#own.includes(event.resourceVersion),
    });
    return this.#decide();
  }

  /**
   * Handles an event that left the cache unchanged, because the cache has the
   * state of an own write or a newer one. If another window made that write, its
   * state has been delivered already.
   */
  stale(event: Omit<HeldEvent<S>, "previous">): Release<S> {
    const isBehind = this.#own.some((own) =>
      compareResourceVersions(event.resourceVersion, own) <= 0
    );
    return isBehind
      ? this.event({ ...event, previous: this.#before })
      : undefined;
  }

  /** Handles a deletion: drops the held events before it. */
  deleted(resourceVersion: string): void {
    this.#held = [];
    this.progress(resourceVersion);
  }

  /**
   * Notes the version that the stream has reached: echoes up to it have arrived,
   * or never will, since the write changed nothing.
   */
  progress(resourceVersion: string): void {
    if (this.#own.length === 0) return;
    this.#own = this.#own.filter((own) =>
      compareResourceVersions(own, resourceVersion) > 0
    );
    if (this.#own.length === 0) this.#before = undefined;
  }

  /**
   * Handles a restart of the server's history: known versions may mean other
   * states now, and no longer identify an echo.
   */
  restart(): void {
    this.#own = [];
    this.#before = undefined;
    for (const event of this.#held) event.isEcho = false;
  }

  #decide(): Release<S> {
    if (this.#held.length === 0) return undefined;
    const oldest = this.#active[0] ?? Infinity;
    const isHeld = ({ begun }: Held<S>) => begun >= oldest;
    if (this.#held.every(isHeld)) return undefined;
    const decided = this.#held.filter((event) => !isHeld(event));
    const [first] = decided as [Held<S>, ...Held<S>[]];
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

/**
 * Ends each part of a write, also after one that throws: a part that is left open
 * holds back all events of its object.
 *
 * @throws The first error of a part.
 */
export function eachOf<Part>(
  parts: readonly Part[],
  end: (part: Part) => void,
): void {
  const errors: unknown[] = [];
  for (const part of parts) {
    try {
      end(part);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
