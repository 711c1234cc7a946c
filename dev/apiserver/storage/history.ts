import type { StoredObject } from "./stored_object.ts";

/** What a write did to an object, by the names that watch events have. */
export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/** Change of one object. */
export interface Change {
  readonly type: ChangeType;
  readonly revision: number;
  /** New state of the object; for a deletion, the last state at the revision of the deletion. */
  readonly object: StoredObject;
  /** Previous state; undefined for a creation. */
  readonly previous: StoredObject | undefined;
}

/** Limits of a collection's history. */
export interface HistoryLimits {
  /** Maximum number of changes. */
  readonly changes: number;
  /** Maximum bytes of past objects. */
  readonly bytes: number;
}

/**
 * Last changes of one collection, oldest first. Watches resume from it, and
 * lists at a past revision undo its changes. Older revisions get the status 410
 * Gone.
 */
export class History {
  readonly #limits: HistoryLimits;
  readonly #onDiscard: (object: StoredObject) => void;
  /** Queue of changes; entries before `#head` are discarded. */
  #changes: Change[] = [];
  #head = 0;
  #bytes = 0;
  #watchFloor: number;
  #listFloor: number;

  /**
   * Creates an empty history.
   *
   * @param limits Limits of the history.
   * @param floors Lowest revisions for watches and for lists.
   * @param onDiscard Function that is called with the object of a change that
   * exceeds the limits.
   */
  constructor(
    limits: HistoryLimits,
    floors: { readonly watch: number; readonly list: number },
    onDiscard: (object: StoredObject) => void,
  ) {
    this.#limits = limits;
    this.#onDiscard = onDiscard;
    this.#watchFloor = floors.watch;
    this.#listFloor = floors.list;
  }

  /** Lowest revision from which a watch is complete. */
  get watchFloor(): number {
    return this.#watchFloor;
  }

  /** Lowest revision at which the collection can be listed. */
  get listFloor(): number {
    return this.#listFloor;
  }

  /** Adds a change and discards the oldest changes beyond the limits. */
  add(change: Change): void {
    this.#changes.push(change);
    this.#bytes += cost(change);
    while (
      this.#changes.length - this.#head > this.#limits.changes ||
      (this.#bytes > this.#limits.bytes &&
        this.#changes.length - this.#head > 1)
    ) this.#onDiscard(this.#forgetOldest());
  }

  /** Discards the changes up to and including a revision. */
  compact(revision: number): void {
    for (
      let oldest = this.#changes[this.#head];
      oldest !== undefined && oldest.revision <= revision;
      oldest = this.#changes[this.#head]
    ) this.#forgetOldest();
    this.#watchFloor = Math.max(this.#watchFloor, revision);
    this.#listFloor = Math.max(this.#listFloor, revision);
  }

  #forgetOldest(): StoredObject {
    const oldest = this.#changes[this.#head] as Change;
    this.#bytes -= cost(oldest);
    this.#watchFloor = this.#listFloor = oldest.revision;
    this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#head);
      this.#head = 0;
    }
    return oldest.object;
  }

  /** Takes over the changes of another history up to and including a revision. */
  resumeFrom(other: History, revision: number): void {
    this.#watchFloor = other.#watchFloor;
    this.#listFloor = other.#listFloor;
    for (let at = other.#head; at < other.#changes.length; at++) {
      const change = other.#changes[at] as Change;
      if (change.revision > revision) break;
      this.add(change);
    }
  }

  /** Changes after a revision, oldest first. */
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
    ? change.object.size
    : change.previous?.size ?? 0;
}
