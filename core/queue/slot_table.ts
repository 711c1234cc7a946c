import { KeyIndex } from "./key_index.ts";
import { resized } from "./resized.ts";

/** What a slot does, apart from the deadlines that it may have. */
export type SlotState = 0 | 1 | 2 | 3;

/** Neither waits to run nor runs. */
export const QUIET: SlotState = 0;
/** Is in the list of its priority. */
export const WAITING: SlotState = 1;
/** Was handed out. */
export const RUNNING: SlotState = 2;
/** Was handed out, and was added again since. */
export const DIRTY: SlotState = 3;

const SMALLEST = 64;
/** Room for so many slots is never given back. */
const KEPT = 4_096;

/**
 * The state of the keys that are in the queue in some way, a row of typed
 * arrays each. Rows are handed out and recycled, so that a key that is not in
 * the queue costs nothing; of what a burst took, the memory is given back.
 */
export class SlotTable {
  readonly #index: KeyIndex = new KeyIndex();
  /** Recycled slots, the last one on top. */
  #free: Int32Array = new Int32Array(0);
  #freeCount = 0;
  #used = 0;

  states: Uint8Array = new Uint8Array(0);
  /** What a run that waits, or will wait, is for; valid while events > 0. */
  priorities: Uint8Array = new Uint8Array(0);
  causes: Uint8Array = new Uint8Array(0);
  details: unknown[] = [];
  /** How many adds the next run answers. */
  events: Uint32Array = new Uint32Array(0);
  /** When the key began to wait. */
  addedAt: Float64Array = new Float64Array(0);
  /** Deadlines, infinite when there is none, and what they are for. */
  timerAt: Float64Array = new Float64Array(0);
  timerCauses: Uint8Array = new Uint8Array(0);
  visitAt: Float64Array = new Float64Array(0);
  visitCauses: Uint8Array = new Uint8Array(0);
  /** Until when the key may not wait to run; zero when it may. */
  heldUntil: Float64Array = new Float64Array(0);
  /** Grows whenever the key is removed: tells incarnations apart. */
  epochs: Uint32Array = new Uint32Array(0);
  /** The epoch at which the slot was handed out. */
  takenEpochs: Uint32Array = new Uint32Array(0);

  /** How many slots there are room for. */
  get capacity(): number {
    return this.states.length;
  }

  /** How many keys have a slot. */
  get size(): number {
    return this.#index.size;
  }

  /** The slot of a key; -1 if it has none. */
  find(key: string): number {
    return this.#index.find(key);
  }

  /** The key of a slot. */
  key(slot: number): string {
    return this.#index.key(slot) as string;
  }

  /** The keys that have a slot. */
  keys(): IterableIterator<string> {
    return this.#index.keys();
  }

  /** Whether there is no slot left for another key. */
  get full(): boolean {
    return this.#freeCount === 0 && this.#used === this.capacity;
  }

  /** The slot of a key; a clean one if it had none. The table is not full. */
  findOrMake(key: string): number {
    const free = this.#freeCount > 0
      ? this.#free[this.#freeCount - 1] as number
      : this.#used;
    const slot = this.#index.findOrSet(key, free);
    if (slot === free) {
      if (this.#freeCount > 0) this.#freeCount--;
      else this.#used++;
    }
    return slot;
  }

  /** Recycles a slot that is quiet and has no deadlines. */
  recycle(slot: number): void {
    this.#index.delete(slot);
    this.#free[this.#freeCount++] = slot;
  }

  /**
   * Doubles the room.
   *
   * @returns The new capacity.
   */
  grow(): number {
    return this.#resize(Math.max(SMALLEST, 2 * this.capacity));
  }

  /**
   * Begins with the first slot again, once the table is empty. Half of the room
   * is given back if less than a quarter was used since the last time: bursts
   * that come again find their room, and after the last one it is gone soon.
   *
   * @returns The new capacity.
   */
  rewind(): number {
    const used = this.#used;
    this.#used = 0;
    this.#freeCount = 0;
    if (this.capacity <= KEPT || used >= this.capacity >>> 2) {
      return this.capacity;
    }
    const capacity = this.capacity >>> 1;
    this.#index.shrink();
    this.details.length = Math.min(this.details.length, capacity);
    return this.#resize(capacity);
  }

  #resize(capacity: number): number {
    this.#free = resized(this.#free, capacity);
    this.states = resized(this.states, capacity);
    this.priorities = resized(this.priorities, capacity);
    this.causes = resized(this.causes, capacity);
    this.events = resized(this.events, capacity);
    this.addedAt = resized(this.addedAt, capacity);
    this.timerAt = resized(this.timerAt, capacity, Infinity);
    this.timerCauses = resized(this.timerCauses, capacity);
    this.visitAt = resized(this.visitAt, capacity, Infinity);
    this.visitCauses = resized(this.visitCauses, capacity);
    this.heldUntil = resized(this.heldUntil, capacity);
    this.epochs = resized(this.epochs, capacity);
    this.takenEpochs = resized(this.takenEpochs, capacity);
    return capacity;
  }
}
