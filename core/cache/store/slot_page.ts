/** How many slots one page holds; the first page of a store begins smaller. */
export const PAGE_BITS = 12;
export const PAGE_SLOTS: number = 1 << PAGE_BITS;
export const PAGE_MASK: number = PAGE_SLOTS - 1;
const FIRST_SLOTS = 64;

/** Bytes of a slot over all columns. */
export const SLOT_BYTES = 40;

/**
 * What is known of 4096 objects without looking at their bytes, as columns over
 * one piece of memory outside the JavaScript heap.
 */
export class SlotPage {
  /** How many slots there are. */
  readonly slots: number;
  /** The version where it is a number of at most 15 digits, else NaN. */
  readonly version: Float64Array;
  /** The uid's four words where it is a UUID. */
  readonly uid: Uint32Array;
  /** Where the name is. */
  readonly name: Uint32Array;
  /** Where the body is, as its tier understands it; of a free slot the next. */
  readonly body: Uint32Array;
  readonly generation: Uint32Array;
  readonly namespace: Uint16Array;
  /** Where the body is, and what else is to be known; 0 for a free slot. */
  readonly state: Uint8Array;
  /** The relist in which the object was seen last. */
  readonly mark: Uint8Array;
  /** How many bodies each tier has, so that a search can leave pages out. */
  readonly bodies: Uint16Array = new Uint16Array(4);

  constructor(slots: number = FIRST_SLOTS) {
    this.slots = slots;
    const memory = new ArrayBuffer(slots * SLOT_BYTES);
    this.version = new Float64Array(memory, 0, slots);
    this.uid = new Uint32Array(memory, slots * 8, slots * 4);
    this.name = new Uint32Array(memory, slots * 24, slots);
    this.body = new Uint32Array(memory, slots * 28, slots);
    this.generation = new Uint32Array(memory, slots * 32, slots);
    this.namespace = new Uint16Array(memory, slots * 36, slots);
    this.state = new Uint8Array(memory, slots * 38, slots);
    this.mark = new Uint8Array(memory, slots * 39, slots);
  }

  /** A page of twice the slots with the same content. */
  grown(): SlotPage {
    const page = new SlotPage(Math.min(PAGE_SLOTS, 2 * this.slots));
    page.version.set(this.version);
    page.uid.set(this.uid);
    page.name.set(this.name);
    page.body.set(this.body);
    page.generation.set(this.generation);
    page.namespace.set(this.namespace);
    page.state.set(this.state);
    page.mark.set(this.mark);
    page.bodies.set(this.bodies);
    return page;
  }
}
