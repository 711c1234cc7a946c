import { LruCache } from "../core/cache/store/lru_cache.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { loadRival } from "./support/rival.ts";
import { garbageOf, peakRss, timeOf } from "./support/sampling.ts";

/** Number of keys, and a cache that holds half of them. */
const KEYS = Array.from(
  { length: 20_000 },
  (_, i) => `team-${i % 250}/app-${i.toString(36)}-67644bbf89-4vs5t`,
);
const CAPACITY = KEYS.length / 2;

/** Interface of both caches. */
interface Cache {
  get(key: string): object | undefined;
  set(key: string, value: object): unknown;
}

function measure(make: () => Cache): readonly Measure[] {
  const values = KEYS.map((key) => ({ key }));
  const cache = make();
  const recent = KEYS.slice(CAPACITY);
  KEYS.forEach((key, i) => cache.set(key, values[i] ?? {}));
  verify(
    KEYS.every((key, i) =>
      cache.get(key) === (i < CAPACITY ? undefined : values[i])
    ),
    "the older half must be gone, and the newer half be there",
  );
  const hit = () => {
    let found: unknown;
    for (const key of recent) found = cache.get(key);
    return found;
  };
  const missing = KEYS.map((key) => `${key}x`);
  const miss = () => {
    let found = 0;
    for (const key of missing) if (cache.get(key) !== undefined) found++;
    return found;
  };
  const evict = () => {
    KEYS.forEach((key, i) => cache.set(key, values[i] ?? {}));
    return cache;
  };
  return [
    { unit: "ns/hit", value: 1000 * timeOf(hit, recent.length) },
    { unit: "ns/miss", value: 1000 * timeOf(miss, missing.length) },
    { unit: "ns/evicting set", value: 1000 * timeOf(evict, KEYS.length) },
    { unit: "B garbage/evicting set", value: garbageOf(evict, KEYS.length) },
    peakRss(),
  ];
}

function coracle(): readonly Measure[] {
  return measure(() => {
    const cache = new LruCache<string, object>(CAPACITY);
    return {
      get: (key) => cache.get(key),
      set: (key, value) => cache.set(key, value, 1),
    };
  });
}

/** Part of lru-cache that is used. */
interface LruCacheModule {
  readonly LRUCache: new (
    options:
      | { readonly max: number }
      | { readonly maxSize: number; readonly sizeCalculation: () => number },
  ) => Cache;
}

async function lruCache(limit: "size" | "count"): Promise<readonly Measure[]> {
  const { LRUCache } = await loadRival<LruCacheModule>("lru-cache");
  return measure(() =>
    new LRUCache(
      limit === "count"
        ? { max: CAPACITY }
        : { maxSize: CAPACITY, sizeCalculation: () => 1 },
    )
  );
}

export const bench: Bench = {
  name: "lru",
  what: "a bounded cache of 10,000 objects: hits, misses, evictions",
  subjects: [
    { name: "coracle", run: () => Promise.resolve(coracle()) },
    {
      name: "lru-cache, by size",
      rival: true,
      needs: "npm",
      run: () => lruCache("size"),
    },
    {
      name: "lru-cache, by count",
      rival: true,
      needs: "npm",
      run: () => lruCache("count"),
    },
  ],
};
