import { Buffer } from "node:buffer";
import type { KubernetesObject } from "../../api/object.ts";
import { Carry } from "../../json/carry.ts";
import { wholeRange } from "../../json/byte_range.ts";
import type { ObjectStore } from "../store/object_store.ts";
import {
  compressPageBeside,
  type PageDictionary,
} from "../store/page_codec.ts";
import { composePage } from "../store/page_layout.ts";
import { PAGE_BYTES, PAGE_OBJECTS } from "../store/tiers.ts";
import { EntryWriter, type FrameFacts, pageHead } from "./page_record.ts";
import { FACTS, FRAME_BYTES, FrameComposer, PAGE } from "./snapshot_format.ts";

/** Record that is written when its frame is. */
interface Draft {
  readonly type: number;
  /** Bytes of the record; of a page, its head and entries. */
  readonly bytes: Uint8Array;
  /** Page after these bytes, and whether it is to be compressed. */
  readonly page?: { readonly bytes: Uint8Array; readonly isPacked: boolean };
}

/**
 * Draft of a frame: it copies the states of objects into pages as they are added.
 * The pages are compressed when the frame is written, beside the event loop.
 */
export class FrameDraft {
  readonly #store: ObjectStore<KubernetesObject>;
  readonly #dictionary: PageDictionary;
  readonly #drafts: Draft[] = [];
  readonly #entries: EntryWriter = new EntryWriter();
  /** Definitions of the indexes; each entry has the values for them. */
  readonly #definitions: readonly string[];
  /** Bodies of the page that is not complete. */
  #bodies: Buffer[] = [];
  #bodyBytes = 0;
  #length = 0;

  /** @param dictionary Dictionary of the file. */
  constructor(
    store: ObjectStore<KubernetesObject>,
    dictionary: PageDictionary,
  ) {
    this.#store = store;
    this.#dictionary = dictionary;
    this.#definitions = store.indexes.saved;
  }

  /** Whether the frame should be written. */
  get isFull(): boolean {
    return this.#length + this.#bodyBytes >= FRAME_BYTES;
  }

  get isEmpty(): boolean {
    return this.#length + this.#bodyBytes === 0;
  }

  addText(type: number, text: string): void {
    this.#endPage();
    this.#add({ type, bytes: Buffer.from(text) });
  }

  /**
   * Adds the present state of the object in a slot, and perhaps of others that are
   * compressed with it.
   *
   * @param changed Slots that are to be written; those that were added are removed.
   * @returns Number of bytes that were copied.
   */
  add(
    slot: number,
    changed: { delete(slot: number): void; has(slot: number): boolean },
  ): number {
    const store = this.#store;
    const stored = store.pages.storedPage(slot);
    if (
      stored !== undefined &&
      (stored.page.isPlain || this.#dictionary !== undefined)
    ) {
      const live = stored.slots.filter((one) => one >= 0);
      const wanted = live.filter((one) => changed.has(one)).length;
      if (2 * wanted >= stored.page.count) {
        this.#endPage();
        for (const one of live) changed.delete(one);
        return this.#addStored(stored);
      }
    }
    changed.delete(slot);
    const body = store.bodyAt(slot);
    if (body === undefined) return 0;
    const { bytes, start, end } = body;
    const copy = Buffer.from(bytes.subarray(start, end));
    this.#entry(slot, this.#bodies.length);
    this.#bodies.push(copy);
    this.#bodyBytes += copy.length;
    if (this.#bodies.length === PAGE_OBJECTS || this.#bodyBytes >= PAGE_BYTES) {
      this.#endPage();
    }
    return copy.length;
  }

  #addStored(
    { page, slots }: NonNullable<
      ReturnType<ObjectStore<KubernetesObject>["pages"]["storedPage"]>
    >,
  ): number {
    const bytes = Buffer.from(page.bytes);
    let written = 0;
    for (const [ordinal, slot] of slots.entries()) {
      if (slot < 0) continue;
      this.#entry(slot, ordinal);
      written++;
    }
    const head = pageHead(page, written, this.#entries.take());
    this.#add({ type: PAGE, bytes: head, page: { bytes, isPacked: true } });
    return bytes.length;
  }

  #entry(slot: number, ordinal: number): void {
    const values = this.#store.indexes.savedValues(slot, this.#definitions);
    this.#entries.add(this.#store, slot, { ordinal, values });
  }

  /** Completes the page of the bodies so far. */
  #endPage(): void {
    const bodies = this.#bodies;
    const count = bodies.length;
    if (count === 0) return;
    const bytes = composePage(
      new Carry(),
      count,
      (at) => wholeRange(bodies[at] as Buffer),
    );
    const isPlain = this.#dictionary === undefined;
    const { length } = bytes;
    const head = pageHead(
      { count, length, isPlain },
      count,
      this.#entries.take(),
    );
    this.#bodies = [];
    this.#bodyBytes = 0;
    this.#add({ type: PAGE, bytes: head, page: { bytes, isPacked: false } });
  }

  #add(draft: Draft): void {
    this.#drafts.push(draft);
    this.#length += draft.bytes.length + (draft.page?.bytes.length ?? 0);
  }

  /** Compresses the pages, and composes the records. */
  async compose(): Promise<FrameComposer> {
    this.#endPage();
    const pages = await Promise.all(
      this.#drafts.map(({ page }) =>
        page === undefined || page.isPacked
          ? page?.bytes
          : compressPageBeside(page.bytes, this.#dictionary)
      ),
    );
    const composer = new FrameComposer();
    const packed = pages.reduce((sum, page) => sum + (page?.length ?? 0), 0);
    const others = this.#drafts.reduce(
      (sum, { bytes }) => sum + bytes.length,
      0,
    );
    // What is compressed twice takes time at each start, and gains little.
    composer.isPacked = packed > others;
    const facts: FrameFacts = {
      definitions: this.#definitions,
      isRegular: this.#store.isRegular,
      objects: this.#store.size,
    };
    composer.addText(FACTS, JSON.stringify(facts));
    for (const [at, { type, bytes }] of this.#drafts.entries()) {
      const page = pages[at];
      composer.addParts(type, page === undefined ? [bytes] : [bytes, page]);
    }
    return composer;
  }
}
