/** Objects and bytes of one tier. */
export interface TierUsage {
  /** How many objects there are. */
  readonly objects: number;
  /** How many bytes they take. */
  readonly bytes: number;
}

/** How much memory a store uses, or several together, in bytes. */
export interface StoreUsage {
  /**
   * Parsed objects that were read lately, each of which is in another tier,
   * too; their bytes are an estimate.
   */
  readonly decoded: TierUsage;
  /** JSON bytes. */
  readonly bytes: TierUsage;
  /** JSON bytes in compressed pages. */
  readonly compressed: TierUsage;
  /** Only the key, uid and resourceVersion. */
  readonly keyOnly: TierUsage;
  /** Keys and where each object is, and the indexes. */
  readonly index: number;
  /** Everything together. */
  readonly total: number;
}

/** What several stores use together. */
export function sumOfUsages(usages: readonly StoreUsage[]): StoreUsage {
  const tier = (name: "decoded" | "bytes" | "compressed" | "keyOnly") => ({
    objects: sum(usages.map((usage) => usage[name].objects)),
    bytes: sum(usages.map((usage) => usage[name].bytes)),
  });
  return {
    decoded: tier("decoded"),
    bytes: tier("bytes"),
    compressed: tier("compressed"),
    keyOnly: tier("keyOnly"),
    index: sum(usages.map(({ index }) => index)),
    total: sum(usages.map(({ total }) => total)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
