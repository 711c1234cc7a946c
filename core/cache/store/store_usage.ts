/** Memory usage of one or several stores. */
export interface StoreUsage {
  /**
   * Cache of decoded objects, which are in another tier, too; its bytes are
   * an estimate.
   */
  readonly decoded: { readonly objects: number; readonly bytes: number };
  /** Objects stored as JSON bytes. */
  readonly bytes: { readonly objects: number; readonly bytes: number };
  /** Objects stored in compressed pages. */
  readonly compressed: { readonly objects: number; readonly bytes: number };
  /** Objects that are stored as key, UID and resourceVersion only. */
  readonly keyOnly: { readonly objects: number; readonly bytes: number };
  /** Size of the table of all objects and of the indexes, in bytes. */
  readonly index: number;
  /** Total memory, in bytes. */
  readonly total: number;
}

export type TierUsage = StoreUsage["bytes"];

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
