import { resized } from "./resized.ts";

/**
 * A binary heap of slots by the time when they are due. It knows where each
 * slot stands, so that a slot can be moved or taken out at once: nothing that
 * was cancelled stays behind.
 *
 * Slots are small numbers that the owner gives out; the arrays are as long as
 * the owner's.
 */
export class TimerHeap {
  /** The heap: slots, the earliest first. */
  #slots: Int32Array;
  /** Where a slot stands in the heap; -1 when it does not. */
  #positions: Int32Array;
  /** When a slot is due; kept beside the heap, for locality. */
  #due: Float64Array;
  #size = 0;

  /** @param capacity How many slots there may be. */
  constructor(capacity: number) {
    this.#slots = new Int32Array(capacity);
    this.#positions = new Int32Array(capacity).fill(-1);
    this.#due = new Float64Array(capacity);
  }

  /** How many slots wait. */
  get size(): number {
    return this.#size;
  }

  /** The slot that is due first; -1 if none waits. */
  get first(): number {
    return this.#size === 0 ? -1 : this.#slots[0] as number;
  }

  /** When the first slot is due; infinite if none waits. */
  get firstDue(): number {
    return this.#size === 0 ? Infinity : this.#due[0] as number;
  }

  /** Makes room for another number of slots; none may wait beyond it. */
  resize(capacity: number): void {
    this.#slots = resized(this.#slots, capacity);
    this.#positions = resized(this.#positions, capacity, -1);
    this.#due = resized(this.#due, capacity);
  }

  /** Makes a slot wait until then; one that waits already is moved. */
  set(slot: number, due: number): void {
    let position = this.#positions[slot] as number;
    if (position < 0) {
      position = this.#size++;
      this.#rise(slot, due, position);
    } else if (due <= (this.#due[position] as number)) {
      this.#rise(slot, due, position);
    } else this.#sink(slot, due, position);
  }

  /** Takes a slot out, if it waits. */
  remove(slot: number): void {
    const hole = this.#positions[slot] as number;
    if (hole < 0) return;
    this.#positions[slot] = -1;
    const last = --this.#size;
    if (hole === last) return;
    const moved = this.#slots[last] as number;
    const due = this.#due[last] as number;
    if (hole > 0 && due < (this.#due[(hole - 1) >> 1] as number)) {
      this.#rise(moved, due, hole);
    } else this.#sink(moved, due, hole);
  }

  /** Puts a slot where it belongs between a position and the root. */
  #rise(slot: number, due: number, from: number): void {
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if ((this.#due[parent] as number) <= due) break;
      this.#move(parent, position);
      position = parent;
    }
    this.#place(slot, due, position);
  }

  /** Puts a slot where it belongs between a position and the leaves. */
  #sink(slot: number, due: number, from: number): void {
    let position = from;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= this.#size) break;
      const right = child + 1;
      if (
        right < this.#size &&
        (this.#due[right] as number) < (this.#due[child] as number)
      ) child = right;
      if ((this.#due[child] as number) >= due) break;
      this.#move(child, position);
      position = child;
    }
    this.#place(slot, due, position);
  }

  #move(from: number, to: number): void {
    const slot = this.#slots[from] as number;
    this.#slots[to] = slot;
    this.#due[to] = this.#due[from] as number;
    this.#positions[slot] = to;
  }

  #place(slot: number, due: number, position: number): void {
    this.#slots[position] = slot;
    this.#due[position] = due;
    this.#positions[slot] = position;
  }
}
