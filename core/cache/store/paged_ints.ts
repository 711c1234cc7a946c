const PAGE_BITS = 12;
const PAGE_LENGTH = 1 << PAGE_BITS;
const PAGE_MASK = PAGE_LENGTH - 1;
const FIRST_LENGTH = 16;

/**
 * 32-bit integers by number, in pages outside the JavaScript heap: however many
 * there are, growing copies no more than a part of the first page.
 */
export class PagedInts {
  readonly #rest: number;
  readonly #pages: (Int32Array | undefined)[] = [];
  #length = 0;

  /** @param rest What stands where nothing was set. */
  constructor(rest: number) {
    this.#rest = rest;
  }

  /** The memory that is held. */
  get allocatedBytes(): number {
    return Int32Array.BYTES_PER_ELEMENT * this.#length;
  }

  /** The integer at a place. */
  get(place: number): number {
    return this.#pages[place >>> PAGE_BITS]?.[place & PAGE_MASK] ?? this.#rest;
  }

  /** Sets the integer at a place. */
  set(place: number, value: number): void {
    const number = place >>> PAGE_BITS;
    const at = place & PAGE_MASK;
    let page = this.#pages[number];
    if (page === undefined || at >= page.length) {
      if (value === this.#rest) return;
      page = this.#grow(number, at);
    }
    page[at] = value;
  }

  /** A page that reaches to a position; the first one begins small. */
  #grow(number: number, at: number): Int32Array {
    const former = this.#pages[number];
    let length = number === 0 ? FIRST_LENGTH : PAGE_LENGTH;
    while (length <= at) length *= 2;
    const page = new Int32Array(length).fill(this.#rest);
    if (former !== undefined) page.set(former);
    while (this.#pages.length < number) this.#pages.push(undefined);
    this.#pages[number] = page;
    this.#length += length - (former?.length ?? 0);
    return page;
  }
}
