import { resized } from "./resized.ts";

/**
 * First-in-first-out lists of slots, linked through typed arrays: a slot is in
 * at most one of them and leaves it from any place at once.
 */
export class SlotLists {
  #next: Int32Array;
  #previous: Int32Array;
  readonly #heads: Int32Array;
  readonly #tails: Int32Array;
  readonly #sizes: Int32Array;

  /**
   * @param lists How many lists there are.
   * @param capacity How many slots there may be.
   */
  constructor(lists: number, capacity: number) {
    this.#heads = new Int32Array(lists).fill(-1);
    this.#tails = new Int32Array(lists).fill(-1);
    this.#sizes = new Int32Array(lists);
    this.#next = new Int32Array(capacity);
    this.#previous = new Int32Array(capacity);
  }

  /** How many slots a list holds. */
  size(list: number): number {
    return this.#sizes[list] as number;
  }

  /** Makes room for another number of slots; none may be listed beyond it. */
  resize(capacity: number): void {
    this.#next = resized(this.#next, capacity);
    this.#previous = resized(this.#previous, capacity);
  }

  /** Appends a slot that is in no list. */
  push(list: number, slot: number): void {
    const tail = this.#tails[list] as number;
    this.#next[slot] = -1;
    this.#previous[slot] = tail;
    if (tail < 0) this.#heads[list] = slot;
    else this.#next[tail] = slot;
    this.#tails[list] = slot;
    this.#sizes[list] = (this.#sizes[list] as number) + 1;
  }

  /** Takes the first slot of a list; -1 if it is empty. */
  shift(list: number): number {
    const slot = this.#heads[list] as number;
    if (slot >= 0) this.remove(list, slot);
    return slot;
  }

  /** Takes a slot out of the list that it is in. */
  remove(list: number, slot: number): void {
    const next = this.#next[slot] as number;
    const previous = this.#previous[slot] as number;
    if (previous < 0) this.#heads[list] = next;
    else this.#next[previous] = next;
    if (next < 0) this.#tails[list] = previous;
    else this.#previous[next] = previous;
    this.#sizes[list] = (this.#sizes[list] as number) - 1;
  }
}
