import { PagedInts } from "./paged_ints.ts";
import { ValueTable } from "./value_table.ts";

const NONE = -1;

/** Neighbours of entries in the list of their value. */
interface Links {
  readonly next: PagedInts;
  readonly previous: PagedInts;
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
  /** Value of each slot, or its first share, or -1. */
  readonly #ofSlot: PagedInts = new PagedInts(NONE);
  readonly #slotLinks: Links = makeLinks();
  readonly #shareLinks: Links = makeLinks();
  /** Slot and value of each share, and the next share of the slot. */
  readonly #slotOfShare: PagedInts = new PagedInts(NONE);
  readonly #valueOfShare: PagedInts = new PagedInts(NONE);
  readonly #nextShare: PagedInts = new PagedInts(NONE);
  /** First freed share; they are linked like those of a slot. */
  #freeShare = NONE;
  #shares = 0;

  get allocatedBytes(): number {
    return [
      this.#values,
      this.#ofSlot,
      this.#slotLinks.next,
      this.#slotLinks.previous,
      this.#shareLinks.next,
      this.#shareLinks.previous,
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

  /** Removes all values of a slot. */
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

  slots(value: string): number[] {
    const slots: number[] = [];
    const number = this.#values.find(value);
    let entry = number < 0 ? NONE : this.#values.first.get(number);
    while (entry !== NONE) {
      const isShare = entry < 0;
      slots.push(isShare ? this.#slotOfShare.get(shareOf(entry)) : entry);
      entry = this.#links(entry).next.get(isShare ? shareOf(entry) : entry);
    }
    return slots;
  }

  #setOne(slot: number, value: string): void {
    const held = this.#ofSlot.get(slot);
    // Most changes of an object do not change its values.
    if (held >= 0 && this.#values.find(value) === held) return;
    this.remove(slot);
    const number = this.#values.enter(value);
    this.#ofSlot.set(slot, number);
    this.#link(slot, number);
  }

  #share(slot: number, value: string): void {
    const number = this.#values.enter(value);
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
    this.#setNext(entry, next);
    this.#setPrevious(entry, NONE);
    if (next !== NONE) this.#setPrevious(next, entry);
    first.set(value, entry);
  }

  /** Removes an entry from the list of its value, and the value with its last entry. */
  #unlink(entry: number, value: number): void {
    const { next: nexts, previous: previouses } = this.#links(entry);
    const at = entry < 0 ? shareOf(entry) : entry;
    const next = nexts.get(at);
    const previous = previouses.get(at);
    if (next !== NONE) this.#setPrevious(next, previous);
    if (previous !== NONE) this.#setNext(previous, next);
    else if (next !== NONE) this.#values.first.set(value, next);
    else this.#values.remove(value);
  }

  #setNext(entry: number, next: number): void {
    this.#links(entry).next.set(entry < 0 ? shareOf(entry) : entry, next);
  }

  #setPrevious(entry: number, previous: number): void {
    this.#links(entry).previous.set(
      entry < 0 ? shareOf(entry) : entry,
      previous,
    );
  }

  #links(entry: number): Links {
    return entry < 0 ? this.#shareLinks : this.#slotLinks;
  }
}

function makeLinks(): Links {
  return { next: new PagedInts(NONE), previous: new PagedInts(NONE) };
}

/**
 * Converts the number of an entry to the reference to a shared list, and the
 * reference back to the number.
 */
function shareOf(entry: number): number {
  return -2 - entry;
}
