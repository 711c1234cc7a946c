import { PagedInts } from "./paged_ints.ts";
import { ValueTable } from "./value_table.ts";

const NONE = -1;

/** Table from the number of an entry (a slot or a share) to an integer. */
class EntryInts {
  readonly #slots: PagedInts = new PagedInts(NONE);
  readonly #shares: PagedInts = new PagedInts(NONE);

  get allocatedBytes(): number {
    return this.#slots.allocatedBytes + this.#shares.allocatedBytes;
  }

  get(entry: number): number {
    return entry < 0
      ? this.#shares.get(shareOf(entry))
      : this.#slots.get(entry);
  }

  set(entry: number, value: number): void {
    if (entry < 0) this.#shares.set(shareOf(entry), value);
    else this.#slots.set(entry, value);
  }
}

/**
 * Posting lists of one index: the slots of each value. It takes 12 bytes per
 * object and about 60 per distinct value, outside the JavaScript heap.
 *
 * An entry is a pair of slot and value, in the doubly linked list of its value.
 * For a slot with one value, as nearly all have, the number of the entry is the
 * slot. A slot with several values has *shares*: entries with numbers of their
 * own, from -2 downwards, in a list of the slot.
 */
export class Postings {
  readonly #values: ValueTable = new ValueTable();
  /** Value of each slot, or its first share if it has several values, or -1. */
  readonly #ofSlot: PagedInts = new PagedInts(NONE);
  /** Neighbours of each entry in the list of its value. */
  readonly #next: EntryInts = new EntryInts();
  readonly #previous: EntryInts = new EntryInts();
  /** Slot and value of each share, and the next share of the slot. */
  readonly #slotOfShare: PagedInts = new PagedInts(NONE);
  readonly #valueOfShare: PagedInts = new PagedInts(NONE);
  readonly #nextShare: PagedInts = new PagedInts(NONE);
  /**
   * Value that was entered last, which is in use, and its number: objects that follow
   * each other often have the same.
   */
  #lastValue: string | undefined;
  #lastNumber = NONE;
  /** First free share; free shares are linked like those of a slot. */
  #freeShare = NONE;
  #shares = 0;

  get allocatedBytes(): number {
    return [
      this.#values,
      this.#ofSlot,
      this.#next,
      this.#previous,
      this.#slotOfShare,
      this.#valueOfShare,
      this.#nextShare,
    ].reduce((sum, { allocatedBytes }) => sum + allocatedBytes, 0);
  }

  /** Sets the values of a slot, in place of its former ones. */
  set(slot: number, values: readonly string[]): void {
    const distinct = values.length > 1 ? [...new Set(values)] : values;
    const [value] = distinct;
    if (value === undefined) return this.remove(slot);
    if (distinct.length === 1) return this.#setOne(slot, value);
    this.remove(slot);
    for (const value of distinct) this.#share(slot, value);
  }

  remove(slot: number): void {
    const held = this.#ofSlot.get(slot);
    if (held === NONE) return;
    this.#ofSlot.set(slot, NONE);
    if (held >= 0) return this.#unlink(slot, held);
    for (let entry = held; entry !== NONE;) {
      const share = shareOf(entry);
      const next = this.#nextShare.get(share);
      this.#unlink(entry, this.#valueOfShare.get(share));
      this.#nextShare.set(share, this.#freeShare);
      this.#freeShare = entry;
      entry = next;
    }
  }

  /** Values of a slot. */
  values(slot: number): string[] {
    const held = this.#ofSlot.get(slot);
    if (held >= 0) return [this.#values.text(held)];
    const values: string[] = [];
    for (let entry = held; entry !== NONE;) {
      const share = shareOf(entry);
      values.push(this.#values.text(this.#valueOfShare.get(share)));
      entry = this.#nextShare.get(share);
    }
    return values;
  }

  slots(value: string): number[] {
    const slots: number[] = [];
    const number = this.#values.find(value);
    let entry = number < 0 ? NONE : this.#values.first.get(number);
    while (entry !== NONE) {
      slots.push(entry < 0 ? this.#slotOfShare.get(shareOf(entry)) : entry);
      entry = this.#next.get(entry);
    }
    return slots;
  }

  #setOne(slot: number, value: string): void {
    const held = this.#ofSlot.get(slot);
    // Most changes of an object do not change its values.
    if (held >= 0 && this.#values.find(value) === held) return;
    this.remove(slot);
    const number = this.#enter(value);
    this.#ofSlot.set(slot, number);
    this.#link(slot, number);
  }

  #enter(value: string): number {
    if (value !== this.#lastValue) {
      this.#lastNumber = this.#values.enter(value);
      this.#lastValue = value;
    }
    return this.#lastNumber;
  }

  #share(slot: number, value: string): void {
    const number = this.#enter(value);
    const entry = this.#takeShare();
    const share = shareOf(entry);
    this.#slotOfShare.set(share, slot);
    this.#valueOfShare.set(share, number);
    this.#nextShare.set(share, this.#ofSlot.get(slot));
    this.#ofSlot.set(slot, entry);
    this.#link(entry, number);
  }

  #takeShare(): number {
    const entry = this.#freeShare;
    if (entry === NONE) return shareOf(this.#shares++);
    this.#freeShare = this.#nextShare.get(shareOf(entry));
    return entry;
  }

  /** Adds an entry at the head of the list of a value. */
  #link(entry: number, value: number): void {
    const { first } = this.#values;
    const next = first.get(value);
    this.#next.set(entry, next);
    this.#previous.set(entry, NONE);
    if (next !== NONE) this.#previous.set(next, entry);
    first.set(value, entry);
  }

  /** Removes an entry from the list of its value, and the value with its last entry. */
  #unlink(entry: number, value: number): void {
    const next = this.#next.get(entry);
    const previous = this.#previous.get(entry);
    if (next !== NONE) this.#previous.set(next, previous);
    if (previous !== NONE) this.#next.set(previous, next);
    else if (next !== NONE) this.#values.first.set(value, next);
    else {
      this.#values.remove(value);
      if (value === this.#lastNumber) this.#lastValue = undefined;
    }
  }
}

/** Converts the number of an entry to the index of a share, and back. */
function shareOf(entry: number): number {
  return -2 - entry;
}
