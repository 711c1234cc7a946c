import type { ByteRange } from "../../json/byte_range.ts";

const FNV_PRIME = 0x01000193;

/** Something to begin a hash with that nobody outside this process knows. */
export function hashSeed(): number {
  return Math.floor(Math.random() * 0xffffffff);
}

/** Takes one more number into a hash. */
export function hashNext(hash: number, value: number): number {
  return Math.imul(hash ^ value, FNV_PRIME);
}

/** Takes bytes into a hash. */
export function hashBytes(
  hash: number,
  { bytes, start, end }: ByteRange,
): number {
  for (let i = start; i < end; i++) {
    hash = Math.imul(hash ^ (bytes[i] as number), FNV_PRIME);
  }
  return hash;
}

/** Ends a hash: each of its 32 bits then depends on all that was taken. */
export function hashEnd(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
