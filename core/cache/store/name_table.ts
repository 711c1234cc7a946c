import { Buffer } from "node:buffer";
import { type ByteRange, wholeRange } from "../../json/byte_range.ts";

const FIRST_BLOCK_BYTES = 1024;
const BLOCK_BITS = 18;
const BLOCK_BYTES = 1 << BLOCK_BITS;
const BLOCK_MASK = BLOCK_BYTES - 1;
const MAX_BLOCKS = 1 << (32 - BLOCK_BITS);

/** The longest name, by far more than Kubernetes allows. */
export const MAX_NAME_BYTES = 0xfff;
/** How much a name may share with its base: one byte tells it. */
const MAX_SHARED = 0xff;
const HEAD_BYTES = 3;
const BASE_BYTES = 4;

interface Block {
  bytes: Buffer;
  /** The first byte that was never used. */
  top: number;
  /** Bytes in entries that are alive. */
  live: number;
}

/**
 * Names as bytes, each at an address, packed: Pods of one ReplicaSet differ in
 * five characters only, and come one after the other in lists.
 *
 * An entry is `[shared, 1 byte][length, 2 bytes]`; if it shares its beginning
 * with a base, `[place of the base in the block, 4 bytes]`; then the bytes of
 * its own. The base is the last entry of the block that shares nothing. Since
 * entries lean on others, space is reclaimed by blocks: the owner moves the
 * names of a block that is mostly dead, and then releases it.
 */
export class NameTable {
  readonly #blocks: (Block | undefined)[] = [];
  #current = -1;
  /** The last entry that others may share: its place, and its name. */
  #base = 0;
  #baseName: Uint8Array = new Uint8Array(0);
  #allocatedBytes = 0;

  /** The memory that is held. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /**
   * Adds a name.
   *
   * @returns Its address.
   * @throws {RangeError} If it is longer than 4095 bytes.
   */
  add({ bytes, start, end }: ByteRange): number {
    const length = end - start;
    if (length > MAX_NAME_BYTES) {
      throw new RangeError(
        `Cannot keep a name: it must not be longer than ${MAX_NAME_BYTES} bytes: received ${length} bytes`,
      );
    }
    const block = this.#blockFor(HEAD_BYTES + BASE_BYTES + length);
    const shared = this.#sharedLength(bytes, start, length);
    const place = block.top;
    const target = block.bytes;
    target[place] = shared;
    target.writeUInt16LE(length, place + 1);
    let at = place + HEAD_BYTES;
    if (shared > 0) at = target.writeUInt32LE(this.#base, at);
    else {
      this.#base = place;
      this.#baseName = new Uint8Array(bytes.subarray(start, end));
    }
    target.set(bytes.subarray(start + shared, end), at);
    block.top = at + length - shared;
    block.live += block.top - place;
    return ((this.#current << BLOCK_BITS) | place) >>> 0;
  }

  /** Gives a name up; its space is reclaimed with its block. */
  remove(address: number): void {
    const block = this.#block(address);
    const place = address & BLOCK_MASK;
    const shared = block.bytes[place] as number;
    const own = block.bytes.readUInt16LE(place + 1) - shared;
    block.live -= HEAD_BYTES + (shared > 0 ? BASE_BYTES : 0) + own;
  }

  /** Whether the name at an address is this one. */
  equals(address: number, { bytes, start, end }: ByteRange): boolean {
    const { bytes: block } = this.#block(address);
    let at = address & BLOCK_MASK;
    const shared = block[at] as number;
    const length = end - start;
    if (block.readUInt16LE(at + 1) !== length) return false;
    at += HEAD_BYTES;
    const base = shared > 0 ? block.readUInt32LE(at) + HEAD_BYTES : 0;
    if (shared > 0) at += BASE_BYTES;
    for (let i = length - 1; i >= shared; i--) {
      if (block[at + i - shared] !== bytes[start + i]) return false;
    }
    for (let i = 0; i < shared; i++) {
      if (block[base + i] !== bytes[start + i]) return false;
    }
    return true;
  }

  /**
   * Writes the name at an address to a target that is long enough.
   *
   * @returns Its length in bytes.
   */
  read(address: number, target: Buffer): number {
    const { bytes: block } = this.#block(address);
    let at = address & BLOCK_MASK;
    const shared = block[at] as number;
    const length = block.readUInt16LE(at + 1);
    at += HEAD_BYTES;
    if (shared > 0) {
      const base = block.readUInt32LE(at) + HEAD_BYTES;
      block.copy(target, 0, base, base + shared);
      at += BASE_BYTES;
    }
    block.copy(target, shared, at, at + length - shared);
    return length;
  }

  /** A block of which more than half is dead, or -1. */
  deadBlock(): number {
    return this.#blocks.findIndex((block, number) =>
      block !== undefined && block.live < block.top / 2 &&
      (number !== this.#current || block.live < block.bytes.length / 4)
    );
  }

  /** In which block an address lies. */
  blockOf(address: number): number {
    return address >>> BLOCK_BITS;
  }

  /** Begins to move the names of a block: new ones go elsewhere. */
  retire(number: number): void {
    if (number === this.#current) this.#current = -1;
  }

  /** Gives a block back, once its names have moved. */
  release(number: number): void {
    const block = this.#blocks[number];
    if (block === undefined) return;
    this.#allocatedBytes -= block.bytes.length;
    this.#blocks[number] = undefined;
  }

  #block(address: number): Block {
    return this.#blocks[address >>> BLOCK_BITS] as Block;
  }

  #sharedLength(bytes: Uint8Array, start: number, length: number): number {
    const base = this.#baseName;
    const most = Math.min(base.length, length, MAX_SHARED);
    let shared = 0;
    while (shared < most && base[shared] === bytes[start + shared]) shared++;
    // A name that shares less is the better base for those that follow.
    return shared > BASE_BYTES && shared >= length / 2 ? shared : 0;
  }

  #blockFor(size: number): Block {
    const block = this.#blocks[this.#current];
    if (block === undefined) return this.#open(size);
    if (block.top + size <= block.bytes.length) return block;
    if (block.bytes.length === BLOCK_BYTES) return this.#open(size);
    const grown = Buffer.alloc(Math.min(BLOCK_BYTES, 2 * block.bytes.length));
    block.bytes.copy(grown);
    this.#allocatedBytes += grown.length - block.bytes.length;
    block.bytes = grown;
    return this.#blockFor(size);
  }

  #open(size: number): Block {
    let number = this.#blocks.indexOf(undefined);
    if (number < 0) number = this.#blocks.length;
    if (number >= MAX_BLOCKS) {
      throw new RangeError(
        `Cannot keep more names: the table holds at most 4 GiB: received ${size} bytes more`,
      );
    }
    let length = FIRST_BLOCK_BYTES;
    while (length < size) length *= 2;
    const block = { bytes: Buffer.alloc(length), top: 0, live: 0 };
    this.#blocks[number] = block;
    this.#current = number;
    this.#allocatedBytes += length;
    this.#baseName = new Uint8Array(0);
    return block;
  }
}

/** Two bytes name a namespace; 0 is that of cluster-scoped objects. */
const MAX_NAMESPACES = 0xffff;

const NO_BYTES = wholeRange(Buffer.alloc(0));

/** Numbers for namespaces, so that an object needs two bytes for its own. */
export class NamespaceTable {
  readonly #numbers: Map<string, number> = new Map([["", 0]]);
  readonly #names: string[] = [""];
  /** The same, encoded. */
  readonly #bytes: ByteRange[] = [NO_BYTES];
  /** How many objects each has. */
  readonly #counts: number[] = [0];
  readonly #free: number[] = [];

  /** Whether the namespace of a number is this one. */
  equals(number: number, { bytes, start, end }: ByteRange): boolean {
    const own = this.bytes(number);
    if (own.end !== end - start) return false;
    for (let i = 0; i < own.end; i++) {
      if (own.bytes[i] !== bytes[start + i]) return false;
    }
    return true;
  }

  /** The namespace of a number. */
  name(number: number): string {
    return this.#names[number] ?? "";
  }

  /** The namespace of a number, encoded. */
  bytes(number: number): ByteRange {
    return this.#bytes[number] ?? NO_BYTES;
  }

  /**
   * Counts one more object in a namespace.
   *
   * @throws {RangeError} If there are more than 65,535 namespaces.
   */
  enter(namespace: string): number {
    let number = this.#numbers.get(namespace);
    if (number === undefined) {
      number = this.#free.pop() ?? this.#names.length;
      if (number > MAX_NAMESPACES) {
        throw new RangeError(
          `Cannot keep objects of more than ${MAX_NAMESPACES} namespaces in one store: received one of "${namespace}"`,
        );
      }
      this.#numbers.set(namespace, number);
      this.#names[number] = namespace;
      this.#bytes[number] = wholeRange(Buffer.from(namespace));
      this.#counts[number] = 0;
    }
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
    return number;
  }

  /** Counts one object less; a namespace without objects is forgotten. */
  leave(number: number): void {
    const count = (this.#counts[number] ?? 0) - 1;
    this.#counts[number] = count;
    if (count > 0 || number === 0) return;
    this.#numbers.delete(this.name(number));
    this.#free.push(number);
  }
}
