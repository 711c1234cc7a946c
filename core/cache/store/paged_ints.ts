const PAGE_BITS = 12;
const PAGE_LENGTH = 1 << PAGE_BITS;
const PAGE_MASK = PAGE_LENGTH - 1;
const FIRST_LENGTH = 16;

/**
 * Array of 32-bit integers in pages outside the JavaScript heap. Growing copies
 * at most a part of the first page, whatever the length is.
 */
export class PagedInts {
  readonly #unset: number;
  readonly #pages: (Int32Array | undefined)[] = [];
  #length = 0;

  /** @param unset Value of elements that were not set. */
  constructor(unset: number) {
    this.#unset = unset;
  }

  get allocatedBytes(): number {
    return Int32Array.BYTES_PER_ELEMENT * this.#length;
  }

  get(index: number): number {
    return this.#pages[index >>> PAGE_BITS]?.[index & PAGE_MASK] ?? this.#unset;
  }

  set(index: number, value: number): void {
    const number = index >>> PAGE_BITS;
    const at = index & PAGE_MASK;
    let page = this.#pages[number];
    if (page === undefined || at >= page.length) {
      if (value === this.#unset) return;
      page = this.#grow(number, at);
    }
    page[at] = value;
  }

  /** Grows a page so that it contains a position; the first page starts small. */
  #grow(number: number, at: number): Int32Array {
    const former = this.#pages[number];
    let length = number === 0 ? FIRST_LENGTH : PAGE_LENGTH;
    while (length <= at) length *= 2;
    const page = new Int32Array(length).fill(this.#unset);
    if (former !== undefined) page.set(former);
    while (this.#pages.length < number) this.#pages.push(undefined);
    this.#pages[number] = page;
    this.#length += length - (former?.length ?? 0);
    return page;
  }
}
