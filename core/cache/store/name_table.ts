import { Buffer } from "node:buffer";
import {
  asBuffer,
  type ByteRange,
  NO_BYTES,
  rangeText,
  sameBytes,
  wholeRange,
} from "../../json/byte_range.ts";
import { hashBytes } from "./key_table.ts";

const FIRST_BLOCK_BYTES = 1024;
const BLOCK_BITS = 18;
const BLOCK_BYTES = 1 << BLOCK_BITS;
const BLOCK_MASK = BLOCK_BYTES - 1;
const MAX_BLOCKS = 1 << (32 - BLOCK_BITS);

/** Maximum length of a name in bytes, far more than Kubernetes allows. */
export const MAX_NAME_BYTES = 0xfff;
/** Maximum length of a prefix shared with a base name, as stored in a byte. */
const MAX_SHARED = 0xff;
const HEAD_BYTES = 3;
const BASE_BYTES = 4;

/** Name that was read last. */
const lastRead = Buffer.alloc(MAX_NAME_BYTES);

interface Block {
  bytes: Buffer;
  /** Offset of the first byte that was never used. */
  top: number;
  /** Number of bytes in live entries. */
  live: number;
}

/**
 * Table of names as bytes, each at an address, with shared prefixes: the Pods of a
 * ReplicaSet differ in five characters only, and follow each other in lists.
 *
 * An entry is `[shared, 1 byte][length, 2 bytes]`; if it shares a prefix with a
 * base, `[offset of the base in the block, 4 bytes]`; then its own bytes. The base
 * is the last entry of the block that shares nothing. As entries depend on
 * others, space is reclaimed by blocks: the names of a block that is mostly dead
 * are moved, and the block is freed.
 */
export class NameTable {
  readonly #blocks: (Block | undefined)[] = [];
  #current = -1;
  /** Offset and name of the last entry whose prefix others may share. */
  #base = 0;
  #baseName: Uint8Array = NO_BYTES;
  #allocatedBytes = 0;

  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /**
   * Adds a name.
   *
   * @returns Address of the name.
   * @throws {RangeError} If it is longer than 4095 bytes.
   */
  add({ bytes, start, end }: ByteRange): number {
    const length = end - start;
    if (length > MAX_NAME_BYTES) {
      throw new RangeError(
        `Cannot store a name: it must not be longer than ${MAX_NAME_BYTES} bytes: received ${length} bytes`,
      );
    }
    const block = this.#blockFor(HEAD_BYTES + BASE_BYTES + length);
    const shared = this.#sharedLength(bytes, start, length);
    const offset = block.top;
    const target = block.bytes;
    target[offset] = shared;
    target.writeUInt16LE(length, offset + 1);
    let at = offset + HEAD_BYTES;
    if (shared > 0) at = target.writeUInt32LE(this.#base, at);
    else {
      this.#base = offset;
      this.#baseName = new Uint8Array(bytes.subarray(start, end));
    }
    // A name is so short that a loop is faster than a view of it.
    for (let i = start + shared; i < end; i++) {
      target[at++] = bytes[i] as number;
    }
    block.top = at;
    block.live += block.top - offset;
    return ((this.#current << BLOCK_BITS) | offset) >>> 0;
  }

  /** Removes a name; its space is reclaimed with its block. */
  remove(address: number): void {
    const block = this.#block(address);
    const offset = address & BLOCK_MASK;
    const shared = block.bytes[offset] as number;
    const own = block.bytes.readUInt16LE(offset + 1) - shared;
    block.live -= HEAD_BYTES + (shared > 0 ? BASE_BYTES : 0) + own;
  }

  equals(address: number, { bytes, start, end }: ByteRange): boolean {
    const { bytes: block } = this.#block(address);
    let at = address & BLOCK_MASK;
    const shared = block[at] as number;
    const length = end - start;
    if (block.readUInt16LE(at + 1) !== length) return false;
    at += HEAD_BYTES;
    const base = shared > 0 ? block.readUInt32LE(at) + HEAD_BYTES : 0;
    if (shared > 0) at += BASE_BYTES;
    const others = asBuffer(bytes);
    const own = at + length - shared;
    return sameBytes(block, at, own, others, start + shared) &&
      sameBytes(block, base, base + shared, others, start);
  }

  /** Hash of what has a given hash and the name at an address. */
  hash(hash: number, address: number): number {
    const { bytes } = this.#block(address);
    let start = address & BLOCK_MASK;
    const shared = bytes[start] as number;
    const own = bytes.readUInt16LE(start + 1) - shared;
    start += HEAD_BYTES;
    if (shared > 0) {
      const base = bytes.readUInt32LE(start) + HEAD_BYTES;
      hash = hashBytes(hash, { bytes, start: base, end: base + shared });
      start += BASE_BYTES;
    }
    return hashBytes(hash, { bytes, start, end: start + own });
  }

  /** Name at an address, in memory that the next call for any table reuses. */
  read(address: number): ByteRange {
    const target = lastRead;
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
    return { bytes: target, start: 0, end: length };
  }

  /**
   * Frees a block that is mostly unused, if there is one.
   *
   * @param moveAll Function that replaces each address in use by the result of its
   * argument.
   */
  reclaim(moveAll: (move: (address: number) => number) => void): void {
    const number = this.#blocks.findIndex((block, number) =>
      block !== undefined && block.live < block.top / 2 &&
      (number !== this.#current || block.live < block.bytes.length / 4)
    );
    const block = this.#blocks[number];
    if (block === undefined) return;
    if (number === this.#current) this.#current = -1;
    moveAll((address) =>
      address >>> BLOCK_BITS === number ? this.add(this.read(address)) : address
    );
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
    // A name that shares less is a better base for the names that follow.
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
        `Cannot store more names: the table holds at most 4 GiB`,
      );
    }
    let length = FIRST_BLOCK_BYTES;
    while (length < size) length *= 2;
    const block = { bytes: Buffer.alloc(length), top: 0, live: 0 };
    this.#blocks[number] = block;
    this.#current = number;
    this.#allocatedBytes += length;
    this.#baseName = NO_BYTES;
    return block;
  }
}

/** Maximum number of a namespace: two bytes; 0 is for cluster-scoped objects. */
const MAX_NAMESPACES = 0xffff;

interface Namespace {
  readonly name: string;
  /** Encoded name of the namespace. */
  readonly bytes: ByteRange & { readonly bytes: Buffer };
  objects: number;
}

function makeNamespace(name: string): Namespace {
  // Not of the pool of Buffers, which a few bytes would keep.
  const { bytes, start, end } = wholeRange(name);
  return { name, bytes: { bytes: asBuffer(bytes), start, end }, objects: 0 };
}

/** Table of namespaces by number, so that an object stores only two bytes. */
export class NamespaceTable {
  readonly #numbers: Map<string, number> = new Map([["", 0]]);
  readonly #namespaces: Namespace[] = [makeNamespace("")];
  readonly #free: number[] = [];
  /** Number of the namespace that was entered last, which is in use. */
  #last = 0;

  equals(number: number, { bytes, start, end }: ByteRange): boolean {
    const own = this.bytes(number);
    return own.end === end - start &&
      sameBytes(own.bytes, 0, own.end, asBuffer(bytes), start);
  }

  name(number: number): string {
    return this.#at(number).name;
  }

  bytes(number: number): Namespace["bytes"] {
    return this.#at(number).bytes;
  }

  #at(number: number): Namespace {
    return this.#namespaces[number] as Namespace;
  }

  /**
   * Adds an object to a namespace and returns the number of the namespace.
   *
   * @throws {RangeError} If there are more than 65,535 namespaces.
   */
  enter(range: ByteRange): number {
    if (!this.equals(this.#last, range)) this.#last = this.#enter(range);
    this.#at(this.#last).objects++;
    return this.#last;
  }

  #enter(range: ByteRange): number {
    const name = rangeText(range);
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#free.pop() ?? this.#namespaces.length;
      if (number > MAX_NAMESPACES) {
        throw new RangeError(
          `Cannot store objects of more than ${MAX_NAMESPACES} namespaces: received one of "${name}"`,
        );
      }
      this.#numbers.set(name, number);
      this.#namespaces[number] = makeNamespace(name);
    }
    return number;
  }

  /** Removes an object from a namespace; an empty namespace is removed. */
  leave(number: number): void {
    const namespace = this.#at(number);
    if (--namespace.objects > 0 || number === 0) return;
    this.#numbers.delete(namespace.name);
    this.#free.push(number);
    if (number === this.#last) this.#last = 0;
  }
}
