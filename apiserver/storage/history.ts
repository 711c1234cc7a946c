import type { StoredObject } from "./stored_object.ts";

/** How an object changed. */
export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/** One write to one object. */
export interface Change {
  readonly type: ChangeType;
  readonly revision: number;
  /** The new state; for a deletion the last one, at the deletion's revision. */
  readonly object: StoredObject;
  /** The state before; absent for a creation. */
  readonly previous: StoredObject | undefined;
}

/** How much of the past one collection remembers. */
export interface HistoryLimits {
  /** At most so many changes. */
  readonly changes: number;
  /** At most so many bytes of objects that are only remembered. */
  readonly bytes: number;
}

/**
 * The last changes of one collection, oldest first. Watches resume from it and
 * lists at a past revision undo it; what it has forgotten is 410 Gone.
 */
export class History {
  readonly #limits: HistoryLimits;
  /** A queue: entries before `#head` are forgotten. */
  #changes: Change[] = [];
  #head = 0;
  #bytes = 0;
  #watchFloor: number;
  #listFloor: number;

  /**
   * @param limits How much to remember.
   * @param floors From where on it can be watched, and listed.
   */
  constructor(
    limits: HistoryLimits,
    floors: { readonly watch: number; readonly list: number },
  ) {
    this.#limits = limits;
    this.#watchFloor = floors.watch;
    this.#listFloor = floors.list;
  }

  /** The least revision from which a watch misses nothing. */
  get watchFloor(): number {
    return this.#watchFloor;
  }

  /** The least revision at which the collection can still be listed. */
  get listFloor(): number {
    return this.#listFloor;
  }

  /** Remembers a change, and forgets the oldest ones beyond the limits. */
  add(change: Change): void {
    this.#changes.push(change);
    this.#bytes += cost(change);
    while (
      this.#changes.length - this.#head > this.#limits.changes ||
      (this.#bytes > this.#limits.bytes &&
        this.#changes.length - this.#head > 1)
    ) this.#forgetOldest();
  }

  /** Forgets every change up to and including a revision. */
  compact(revision: number): void {
    for (
      let oldest = this.#changes[this.#head];
      oldest !== undefined && oldest.revision <= revision;
      oldest = this.#changes[this.#head]
    ) this.#forgetOldest();
    this.#watchFloor = Math.max(this.#watchFloor, revision);
    this.#listFloor = Math.max(this.#listFloor, revision);
  }

  #forgetOldest(): void {
    const oldest = this.#changes[this.#head] as Change;
    this.#bytes -= cost(oldest);
    this.#watchFloor = this.#listFloor = oldest.revision;
    this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#head);
      this.#head = 0;
    }
  }

  /** The changes after a revision, oldest first. */
  since(revision: number): Change[] {
    let low = this.#head;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const change = this.#changes[middle] as Change;
      if (change.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#changes.slice(low);
  }
}

function cost(change: Change): number {
  return change.type === "DELETED"
    ? change.object.bytes.length
    : change.previous?.bytes.length ?? 0;
}
