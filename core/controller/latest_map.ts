import { hashEnd } from "../cache/store/key_table.ts";
import { textHash } from "./shard.ts";

/** Map of all that have no keys yet: a thousand controllers have many. */
const EMPTY: Map<string, never> = new Map<string, never>();

/**
 * Map that forgets old keys. It has two generations: a value is set in the
 * newer one, and once that has `limit` keys, it replaces the older one. So the
 * map keeps the `limit` keys that were set last, and never more than twice as
 * many. A key set again stays in the older one, too, where it is hidden.
 *
 * With a sample, some keys outlive their generation, whatever is set after them:
 * all as long as they are few, and otherwise those whose hashes fit, fewer with
 * every key in excess. What happens to very many keys in turn is then seen on
 * these.
 */
export class LatestMap<V> {
  readonly #limit: number | (() => number);
  readonly #sample: SampledKeys<V> | undefined;
  #newer: Map<string, V> = EMPTY;
  #older: Map<string, V> = EMPTY;
  #hasForgotten = false;

  /**
   * Creates a map of `limit` keys per generation, which may be `Infinity`, or change.
   *
   * @param sample Number of keys of the sample, which has at most twice as many.
   */
  constructor(limit: number | (() => number), sample = 0) {
    this.#limit = limit;
    this.#sample = sample === 0 ? undefined : new SampledKeys(sample);
  }

  /** Whether keys were forgotten since the map was last empty. */
  get hasForgotten(): boolean {
    return this.#hasForgotten;
  }

  /** Number of keys, without those of the sample. */
  get size(): number {
    return this.entries().length;
  }

  get(key: string): V | undefined {
    return this.#newer.get(key) ?? this.#older.get(key) ??
      this.#sample?.get(key);
  }

  set(key: string, value: V): void {
    const limit = typeof this.#limit === "number" ? this.#limit : this.#limit();
    if (this.#newer.size >= limit && !this.#newer.has(key)) {
      this.#hasForgotten ||= this.#older.size > 0;
      this.#sample?.offer(this.#older);
      this.#older = this.#newer;
      this.#newer = new Map();
    } else if (this.#newer === EMPTY) this.#newer = new Map();
    this.#newer.set(key, value);
  }

  delete(key: string): void {
    this.#newer.delete(key);
    this.#older.delete(key);
    this.#sample?.delete(key);
    if (this.#newer.size + this.#older.size === 0) this.#hasForgotten = false;
  }

  clear(): void {
    this.#newer.clear();
    this.#older.clear();
    this.#sample?.clear();
    this.#hasForgotten = false;
  }

  /** Keys and values, without those of the sample; the latest last. */
  entries(): [string, V][] {
    const older = [...this.#older].filter(([key]) => !this.#newer.has(key));
    return [...older, ...this.#newer];
  }
}

/** Times that each key of the sample is offered before unused ones are dropped. */
const OFFERS = 20;

/** Keys whose hashes end with a number of zero bits, which follows their number. */
class SampledKeys<V> {
  readonly #limit: number;
  #zeroBits = 0;
  #offered = 0;
  #newer: Map<string, V> = EMPTY;
  #older: Map<string, V> = EMPTY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): V | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }

  /** Keeps those of the keys that belong to the sample. */
  offer(values: ReadonlyMap<string, V>): void {
    if (this.#newer === EMPTY && values.size > 0) this.#newer = new Map();
    for (const [key, value] of values) {
      if (this.#isSampled(key)) this.#newer.set(key, value);
      if (this.#newer.size <= this.#limit) continue;
      this.#zeroBits++;
      for (const map of [this.#newer, this.#older]) {
        for (const key of map.keys()) {
          if (!this.#isSampled(key)) map.delete(key);
        }
      }
    }
    this.#offered += values.size;
    if (this.#offered < OFFERS * this.#limit * 2 ** this.#zeroBits) return;
    if (this.#newer.size <= this.#limit / 2 && this.#zeroBits > 0) {
      this.#zeroBits--;
    }
    this.#offered = 0;
    this.#older = this.#newer;
    this.#newer = new Map();
  }

  delete(key: string): void {
    this.#newer.delete(key);
    this.#older.delete(key);
  }

  clear(): void {
    this.#newer.clear();
    this.#older.clear();
    this.#zeroBits = this.#offered = 0;
  }

  #isSampled(key: string): boolean {
    return hashEnd(textHash(key)) % 2 ** this.#zeroBits === 0;
  }
}
