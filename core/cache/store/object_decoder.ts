import type { KubernetesObject } from "../../api/object.ts";
import { type ByteRange, parseRange } from "../../json/byte_range.ts";
import type { BodyWriter } from "./bodies.ts";
import { LruCache } from "./lru_cache.ts";
import type { Tiers } from "./tiers.ts";
import { PartSharing } from "./part_sharing.ts";
import type { TierUsage } from "./store_usage.ts";

/** How much of the limit is not given up when memory is short. */
const KEPT_SHARE = 1 / 8;

/** Parses the bodies of a store, and keeps the objects that were read lately. */
export class ObjectDecoder<T extends KubernetesObject> {
  readonly #bodies: Tiers;
  readonly #writer: BodyWriter;
  readonly #decoded: LruCache<number, T>;
  readonly #sharing: PartSharing = new PartSharing();

  constructor(bodies: Tiers, writer: BodyWriter) {
    this.#bodies = bodies;
    this.#writer = writer;
    this.#decoded = new LruCache({ maxSize: 0 });
  }

  /** How many bytes of decoded objects may be kept. */
  get limit(): number {
    return this.#decoded.maxSize;
  }

  set limit(bytes: number) {
    if (bytes !== this.#decoded.maxSize) this.#decoded.maxSize = bytes;
  }

  /** How many bytes of decoded objects are kept. */
  get bytes(): number {
    return this.#decoded.size;
  }

  /** The objects that are kept. */
  get usage(): TierUsage {
    return { objects: this.#decoded.count, bytes: this.#decoded.size };
  }

  /** How much of them may be forgotten: a few are always kept. */
  get shrinkableBytes(): number {
    const { size } = this.#decoded;
    return size > this.limit * KEPT_SHARE ? size : 0;
  }

  /**
   * The object in a slot, frozen; undefined if its body was given up.
   *
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  get(slot: number): T | undefined {
    const known = this.#decoded.get(slot);
    if (known !== undefined) return known;
    const body = this.#bodies.read(slot);
    if (body === undefined) return undefined;
    this.#bodies.touch(slot);
    return this.keep(slot, body);
  }

  /** The same, without counting as a use: for one pass over all objects. */
  peek(slot: number): T | undefined {
    const known = this.#decoded.peek(slot);
    if (known !== undefined) return known;
    const body = this.#bodies.read(slot);
    return body === undefined ? undefined : this.decode(body);
  }

  /** A fresh object that the caller may change. */
  copy(slot: number): T | undefined {
    const body = this.#bodies.read(slot);
    if (body === undefined) return undefined;
    this.#bodies.touch(slot);
    const object = parseRange(body) as T;
    this.#writer.guard(object);
    return object;
  }

  /** Parses and freezes an object. */
  decode(body: ByteRange): T {
    const object = parseRange(body) as T;
    return this.#sharing.share(object, this.#writer.guard(object));
  }

  /** Parses and freezes an object, and keeps it as that of a slot. */
  keep(slot: number, body: ByteRange): T {
    const object = this.decode(body);
    this.#decoded.set(slot, object, this.#sharing.bytes);
    return object;
  }

  /** Forgets the object of a slot. */
  forget(slot: number): void {
    this.#decoded.delete(slot);
  }

  /** Forgets the half that was not read for longest. */
  shrink(): void {
    this.#decoded.trim(Math.floor(this.#decoded.size / 2));
    this.#sharing.clear();
  }
}
