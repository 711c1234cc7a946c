const FIRST_WORDS = 16;

/** Set of slots of a store: one bit for each. */
export class SlotSet {
  #words: Uint32Array = new Uint32Array(FIRST_WORDS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(slot: number): boolean {
    return ((this.#words[slot >>> 5] ?? 0) & (1 << (slot & 31))) !== 0;
  }

  add(slot: number): void {
    const at = slot >>> 5;
    if (at >= this.#words.length) this.#grow(at + 1);
    const word = this.#words[at] as number;
    const bit = 1 << (slot & 31);
    if ((word & bit) !== 0) return;
    this.#words[at] = word | bit;
    this.#size++;
  }

  delete(slot: number): void {
    if (!this.has(slot)) return;
    const at = slot >>> 5;
    this.#words[at] = (this.#words[at] as number) & ~(1 << (slot & 31));
    this.#size--;
  }

  clear(): void {
    this.#words = new Uint32Array(FIRST_WORDS);
    this.#size = 0;
  }

  /** First slot of the set from a given one on; -1 if none exists. */
  next(slot: number): number {
    const words = this.#words;
    let at = slot >>> 5;
    let word = (words[at] ?? 0) & (-1 << (slot & 31));
    while (word === 0) {
      if (++at >= words.length) return -1;
      word = words[at] as number;
    }
    return (at << 5) + 31 - Math.clz32(word & -word);
  }

  #grow(needed: number): void {
    let { length } = this.#words;
    while (length < needed) length *= 2;
    const words = new Uint32Array(length);
    words.set(this.#words);
    this.#words = words;
  }
}
