import type { KubernetesObject } from "../../api/object.ts";
import { type ByteRange, parseRange } from "../../json/byte_range.ts";
import type { BodyWriter } from "./bodies.ts";
import { LruCache } from "./lru_cache.ts";
import type { Tiers } from "./tiers.ts";
import { PartSharing } from "./part_sharing.ts";

/** Share of the cache's size limit that is kept when memory is short. */
const KEPT_SHARE = 1 / 8;

/** Parts that decoded objects of all stores share: many stores are small. */
const sharing = new PartSharing();

/** Decoder of the bodies of a store, with a cache of recently read objects. */
export class ObjectDecoder<T extends KubernetesObject> {
  readonly #bodies: Tiers;
  readonly #writer: BodyWriter;
  /** Recently read objects; their sizes are in bytes. */
  readonly cache: LruCache<number, T> = new LruCache(0);

  constructor(bodies: Tiers, writer: BodyWriter) {
    this.#bodies = bodies;
    this.#writer = writer;
  }

  /** Number of bytes that may be evicted: some objects are always kept. */
  get shrinkableBytes(): number {
    const { size, maxSize } = this.cache;
    return size > maxSize * KEPT_SHARE ? size : 0;
  }

  /**
   * Object in a slot, frozen and cached; undefined if its body was dropped.
   *
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  get(slot: number): T | undefined {
    const known = this.cache.get(slot);
    if (known !== undefined) return known;
    const body = this.#bodies.read(slot);
    if (body === undefined) return undefined;
    this.#bodies.touch(slot);
    return this.keep(slot, body);
  }

  /** Object in a slot, for passes over all objects; not counted as a use. */
  peek(slot: number): T | undefined {
    const known = this.cache.peek(slot);
    if (known !== undefined) return known;
    const body = this.#bodies.read(slot);
    return body === undefined ? undefined : this.decode(body);
  }

  /**
   * Object in a slot for a reader who neither changes it nor hands it out, and
   * soon forgets it: if it is not cached, it is not frozen and shares no parts, which
   * would take longer than parsing it.
   */
  read(slot: number): T | undefined {
    const known = this.cache.peek(slot);
    if (known !== undefined) return known;
    const body = this.#bodies.read(slot);
    if (body === undefined) return undefined;
    const object = parseRange(body) as T;
    this.#writer.guard(object);
    return object;
  }

  /** Decodes and freezes an object. */
  decode(body: ByteRange): T {
    const object = parseRange(body) as T;
    return sharing.share(object, this.#writer.guard(object));
  }

  /** Decodes, freezes and caches the object of a slot. */
  keep(slot: number, body: ByteRange): T {
    const object = this.decode(body);
    this.cache.set(slot, object, sharing.bytes);
    return object;
  }

  /** Evicts the least recently used half of the cached objects. */
  shrink(): void {
    this.cache.trim(Math.floor(this.cache.size / 2));
    sharing.clear();
  }
}
