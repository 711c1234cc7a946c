const NONE = -1;
const FIRST_ENTRIES = 16;

/**
 * Which slots have which values: one index of a store, in about 28 bytes an
 * entry outside the JavaScript heap, and one text for each different value.
 *
 * An entry is a pair of slot and value. It is in two lists at once: that of its
 * slot, and that of its value, which is linked both ways so that an entry can
 * leave it at once.
 */
export class Postings {
  /** The first entry of each value and each slot. */
  readonly #ofValue: Map<string, number> = new Map();
  #ofSlot: Int32Array = new Int32Array(FIRST_ENTRIES).fill(NONE);
  #values: string[] = [];
  #slot: Int32Array = new Int32Array(FIRST_ENTRIES);
  #nextOfSlot: Int32Array = new Int32Array(FIRST_ENTRIES);
  #next: Int32Array = new Int32Array(FIRST_ENTRIES);
  #previous: Int32Array = new Int32Array(FIRST_ENTRIES);
  /** Entries that were freed, linked by `#next`. */
  #free = NONE;
  #used = 0;

  /** The memory that is held, but for the values' texts. */
  get allocatedBytes(): number {
    return 4 * (this.#ofSlot.length + 4 * this.#slot.length) +
      8 * this.#used + 100 * this.#ofValue.size;
  }

  /** Makes these the values of a slot, in place of any it had. */
  set(slot: number, values: readonly string[]): void {
    this.remove(slot);
    if (slot >= this.#ofSlot.length) this.#growSlots(slot);
    for (const value of new Set(values)) this.#add(slot, value);
  }

  /** Takes all values from a slot. */
  remove(slot: number): void {
    let entry = this.#ofSlot[slot] ?? NONE;
    while (entry !== NONE) {
      const next = this.#nextOfSlot[entry] as number;
      this.#unlink(entry);
      this.#next[entry] = this.#free;
      this.#free = entry;
      entry = next;
    }
    if (slot < this.#ofSlot.length) this.#ofSlot[slot] = NONE;
  }

  /** The slots that have a value. */
  slots(value: string): number[] {
    const slots: number[] = [];
    let entry = this.#ofValue.get(value) ?? NONE;
    while (entry !== NONE) {
      slots.push(this.#slot[entry] as number);
      entry = this.#next[entry] as number;
    }
    return slots;
  }

  /** Every value that some slot has. */
  values(): string[] {
    return [...this.#ofValue.keys()];
  }

  #add(slot: number, value: string): void {
    const entry = this.#take();
    const first = this.#ofValue.get(value) ?? NONE;
    this.#slot[entry] = slot;
    // One text for all entries of a value, not one for each.
    this.#values[entry] = first === NONE
      ? value
      : this.#values[first] as string;
    this.#nextOfSlot[entry] = this.#ofSlot[slot] as number;
    this.#ofSlot[slot] = entry;
    this.#next[entry] = first;
    this.#previous[entry] = NONE;
    if (first !== NONE) this.#previous[first] = entry;
    this.#ofValue.set(value, entry);
  }

  #unlink(entry: number): void {
    const next = this.#next[entry] as number;
    const previous = this.#previous[entry] as number;
    const value = this.#values[entry] as string;
    if (next !== NONE) this.#previous[next] = previous;
    if (previous !== NONE) this.#next[previous] = next;
    else if (next !== NONE) this.#ofValue.set(value, next);
    else this.#ofValue.delete(value);
    this.#values[entry] = "";
  }

  #take(): number {
    const entry = this.#free;
    if (entry !== NONE) {
      this.#free = this.#next[entry] as number;
      return entry;
    }
    if (this.#used === this.#slot.length) {
      this.#slot = grown(this.#slot, 0);
      this.#nextOfSlot = grown(this.#nextOfSlot, 0);
      this.#next = grown(this.#next, 0);
      this.#previous = grown(this.#previous, 0);
    }
    return this.#used++;
  }

  #growSlots(slot: number): void {
    while (slot >= this.#ofSlot.length) {
      this.#ofSlot = grown(this.#ofSlot, NONE);
    }
  }
}

function grown(column: Int32Array, rest: number): Int32Array {
  const longer = new Int32Array(Math.ceil(column.length * 1.5)).fill(rest);
  longer.set(column);
  return longer;
}
