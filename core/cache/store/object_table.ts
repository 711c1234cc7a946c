import { Buffer } from "node:buffer";
import type { ObjectKey } from "../../api/object_key.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import { rangeText } from "../../json/json_text.ts";
import { ObjectHeader } from "../../json/object_header.ts";
import { hashBytes, hashEnd, hashNext, hashSeed } from "./key_hash.ts";
import { KeyTable, MAX_SLOTS } from "./key_table.ts";
import { MAX_NAME_BYTES, NameTable } from "./name_table.ts";
import { NamespaceTable } from "./namespace_table.ts";
import {
  PAGE_BITS,
  PAGE_MASK,
  PAGE_SLOTS,
  SLOT_BYTES,
  SlotPage,
} from "./slot_page.ts";
import { readUuid, uuidText } from "./uuid.ts";

const SLASH = 0x2f;

/** A range that is set anew, so that none is made. */
type Range = { -readonly [Part in keyof ByteRange]: ByteRange[Part] };

/**
 * The index of a store: which objects there are, each in a slot, with what is
 * known of them without their bytes. It takes about 64 bytes an object, outside
 * the JavaScript heap, and is never evicted.
 */
export class ObjectTable {
  readonly #pages: SlotPage[] = [];
  readonly #keys: KeyTable = new KeyTable((slot) => this.#hashOf(slot));
  readonly #names: NameTable = new NameTable();
  readonly #namespaces: NamespaceTable = new NamespaceTable();
  /** What does not fit into the columns: rare. */
  readonly #uidTexts: Map<number, string> = new Map();
  readonly #versionTexts: Map<number, string> = new Map();
  /** Slots that were never used begin here. */
  #top = 0;
  /** How many slots the pages have. */
  #slots = 0;
  /** The first slot that was freed, plus one; 0 for none. */
  #free = 0;
  #size = 0;
  /** The key that is sought: as bytes, so that none is decoded; and its hash. */
  readonly #namespace: Range = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  readonly #name: Range = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  #hash = 0;
  /** The header that was sought last, in which turn of it, and its slot. */
  #sought: ObjectHeader | undefined;
  #soughtTurn = 0;
  #soughtSlot = -1;
  /** Differs in every process, so that nobody can prepare names that collide. */
  readonly #seed: number = hashSeed();
  /** The words of the uid that was read last, if it was a UUID; from where. */
  readonly #words: Uint32Array = new Uint32Array(4);
  #isUuid = false;
  #uidHeader: ObjectHeader | undefined;
  #uidTurn = 0;
  /** Holds the name that is sought, and the one that was read last. */
  #scratch: Buffer = Buffer.alloc(256);
  readonly #read: Buffer = Buffer.alloc(MAX_NAME_BYTES);

  /** How many objects there are. */
  get size(): number {
    return this.#size;
  }

  /** Slots are below this number. */
  get top(): number {
    return this.#top;
  }

  /** The page of a slot, for reading and writing its columns. */
  page(slot: number): SlotPage {
    return this.#pages[slot >>> PAGE_BITS] as SlotPage;
  }

  /** The slot of an object, or -1; the key is remembered for an `add`. */
  find(key: ObjectKey | ObjectHeader): number {
    const isHeader = key instanceof ObjectHeader;
    // One event asks for the same object several times.
    if (isHeader && key === this.#sought && key.turn === this.#soughtTurn) {
      return this.#soughtSlot;
    }
    this.#seek(key);
    const slot = this.#search();
    this.#sought = isHeader ? key : undefined;
    this.#soughtTurn = isHeader ? key.turn : 0;
    this.#soughtSlot = slot;
    return slot;
  }

  #search(): number {
    let slot = this.#keys.first(this.#hash);
    while (slot >= 0) {
      const page = this.page(slot);
      const at = slot & PAGE_MASK;
      if (
        this.#names.equals(page.name[at] as number, this.#name) &&
        this.#namespaces.equals(page.namespace[at] as number, this.#namespace)
      ) return slot;
      slot = this.#keys.next();
    }
    return -1;
  }

  /**
   * A slot for the key that was sought last and not found.
   *
   * @throws {RangeError} If there are too many objects or namespaces.
   */
  add(): number {
    const namespace = this.#namespaces.enter(rangeText(this.#namespace));
    const slot = this.#takeSlot();
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    page.namespace[at] = namespace;
    page.name[at] = this.#names.add(this.#name);
    this.#keys.add(this.#hash, slot);
    this.#sought = undefined;
    this.#size++;
    return slot;
  }

  /** Frees a slot. */
  remove(slot: number): void {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    this.#keys.remove(this.#hashOf(slot), slot);
    this.#namespaces.leave(page.namespace[at] as number);
    this.#names.remove(page.name[at] as number);
    this.#uidTexts.delete(slot);
    this.#versionTexts.delete(slot);
    page.state[at] = 0;
    page.body[at] = this.#free;
    this.#free = slot + 1;
    this.#sought = undefined;
    this.#size--;
    this.#reclaimNames();
  }

  /** The next slot in use from a slot on, or -1. */
  nextUsed(slot: number): number {
    for (; slot < this.#top; slot++) {
      if (this.page(slot).state[slot & PAGE_MASK] !== 0) return slot;
    }
    return -1;
  }

  /** Whether the object in a slot is in a namespace. */
  isIn(slot: number, namespace: string): boolean {
    const number = this.page(slot).namespace[slot & PAGE_MASK];
    return this.#namespaces.name(number as number) === namespace;
  }

  /** The key of the object in a slot. */
  key(slot: number): ObjectKey {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    const name = this.#nameText(page.name[at] as number);
    const namespace = this.#namespaces.name(page.namespace[at] as number);
    return namespace === "" ? { name } : { namespace, name };
  }

  /** The uid of the object in a slot. */
  uid(slot: number): string {
    return this.#uidTexts.get(slot) ??
      uuidText(this.page(slot).uid, 4 * (slot & PAGE_MASK));
  }

  /** Whether the object of a header is the one in a slot, not its successor. */
  hasUid(slot: number, header: ObjectHeader): boolean {
    if (this.#uidTexts.size > 0 && this.#uidTexts.has(slot)) {
      return this.#uidTexts.get(slot) === header.uid;
    }
    if (!this.#readUid(header)) return false;
    const { uid } = this.page(slot);
    const at = 4 * (slot & PAGE_MASK);
    const words = this.#words;
    return uid[at] === words[0] && uid[at + 1] === words[1] &&
      uid[at + 2] === words[2] && uid[at + 3] === words[3];
  }

  setUid(slot: number, header: ObjectHeader): void {
    if (this.#uidTexts.size > 0) this.#uidTexts.delete(slot);
    if (this.#readUid(header)) {
      const { uid } = this.page(slot);
      const at = 4 * (slot & PAGE_MASK);
      for (let i = 0; i < 4; i++) uid[at + i] = this.#words[i] as number;
    } else this.#uidTexts.set(slot, header.uid);
  }

  /** Whether the uid of a header is a UUID, which are then the words. */
  #readUid(header: ObjectHeader): boolean {
    // One event asks for it several times.
    if (header !== this.#uidHeader || header.turn !== this.#uidTurn) {
      this.#isUuid = readUuid(header.string("uid"), this.#words);
      this.#uidHeader = header;
      this.#uidTurn = header.turn;
    }
    return this.#isUuid;
  }

  /** The resourceVersion of the object in a slot. */
  version(slot: number): string {
    const version = this.page(slot).version[slot & PAGE_MASK] as number;
    return Number.isNaN(version)
      ? this.#versionTexts.get(slot) ?? ""
      : String(version);
  }

  setVersion(slot: number, header: ObjectHeader): void {
    const version = header.versionNumber;
    this.page(slot).version[slot & PAGE_MASK] = version;
    if (Number.isNaN(version)) {
      this.#versionTexts.set(slot, header.resourceVersion);
    } else if (this.#versionTexts.size > 0) this.#versionTexts.delete(slot);
  }

  /**
   * Compares the version in a slot with that of a header: negative if it is
   * older. Texts are compared by length, then digits; numbers stand only for
   * versions short enough to be exact, and so have the same order.
   */
  compareVersion(slot: number, header: ObjectHeader): number {
    const stored = this.page(slot).version[slot & PAGE_MASK] as number;
    const difference = stored - header.versionNumber;
    return Number.isNaN(difference)
      ? compareResourceVersions(this.version(slot), header.resourceVersion)
      : difference;
  }

  /** Whether the version in a slot is newer than a text. */
  isNewer(slot: number, version: string): boolean {
    return compareResourceVersions(this.version(slot), version) > 0;
  }

  /** The memory that is held, in bytes. */
  get allocatedBytes(): number {
    return this.#names.allocatedBytes + this.#keys.allocatedBytes +
      this.#slots * SLOT_BYTES;
  }

  #takeSlot(): number {
    if (this.#free > 0) {
      const slot = this.#free - 1;
      this.#free = this.page(slot).body[slot & PAGE_MASK] as number;
      return slot;
    }
    if (this.#top >= MAX_SLOTS) {
      throw new RangeError(
        `Cannot keep more objects: a store holds at most ${MAX_SLOTS}: received one more`,
      );
    }
    const slot = this.#top++;
    const number = slot >>> PAGE_BITS;
    const page = this.#pages[number];
    if (page === undefined) {
      this.#pages[number] = new SlotPage(number === 0 ? undefined : PAGE_SLOTS);
    } else if ((slot & PAGE_MASK) >= page.slots) {
      this.#slots -= page.slots;
      this.#pages[number] = page.grown();
    } else return slot;
    this.#slots += this.page(slot).slots;
    return slot;
  }

  /** Makes a key the one that is sought. */
  #seek(key: ObjectKey | ObjectHeader): void {
    if (
      !(key instanceof ObjectHeader) || key.isEscaped("name") ||
      key.isEscaped("namespace")
    ) this.#encode(key);
    else {
      copyRange(key.string("name"), this.#name);
      copyRange(key.string("namespace"), this.#namespace);
    }
    this.#hash = this.#hashKey(this.#namespace, this.#name);
  }

  /** Writes a key to the scratch buffer. */
  #encode({ namespace = "", name }: ObjectKey): void {
    const most = 3 * (name.length + namespace.length);
    if (most > this.#scratch.length) this.#scratch = Buffer.alloc(most);
    const scratch = this.#scratch;
    const middle = scratch.write(name, "utf8");
    const end = middle + scratch.write(namespace, middle, "utf8");
    copyRange({ bytes: scratch, start: 0, end: middle }, this.#name);
    copyRange({ bytes: scratch, start: middle, end }, this.#namespace);
  }

  #hashOf(slot: number): number {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    const bytes = this.#readName(page.name[at] as number);
    const namespace = this.#namespaces.bytes(page.namespace[at] as number);
    return this.#hashKey(namespace, bytes);
  }

  #hashKey(namespace: ByteRange, name: ByteRange): number {
    const hash = hashNext(hashBytes(this.#seed, namespace), SLASH);
    return hashEnd(hashBytes(hash, name));
  }

  /** The name at an address, in memory of its own that the next call reuses. */
  #readName(address: number): ByteRange {
    const end = this.#names.read(address, this.#read);
    return { bytes: this.#read, start: 0, end };
  }

  #nameText(address: number): string {
    return rangeText(this.#readName(address));
  }

  /** Moves the names out of a block that is mostly dead. */
  #reclaimNames(): void {
    const names = this.#names;
    const block = names.deadBlock();
    if (block < 0) return;
    names.retire(block);
    for (
      let slot = this.nextUsed(0);
      slot >= 0;
      slot = this.nextUsed(slot + 1)
    ) {
      const { name } = this.page(slot);
      const at = slot & PAGE_MASK;
      const address = name[at] as number;
      if (names.blockOf(address) === block) {
        name[at] = names.add(this.#readName(address));
      }
    }
    names.release(block);
  }
}

function copyRange({ bytes, start, end }: ByteRange, target: Range): void {
  target.bytes = bytes;
  target.start = start;
  target.end = end;
}
