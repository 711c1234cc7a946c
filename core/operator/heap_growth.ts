import process from "node:process";
import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 collect its heap before it grows, until the process ends.
 *
 * By default V8 lets the young generation grow to some 60 to 100 MiB and the old
 * one to several times of what lives there, for programs that make much that
 * lives for long. What an operator makes dies soon: its caches lie outside the
 * heap, in their budget. So it loses nothing by a young generation that stays as
 * small as it is, and an old one that is collected when it has grown by half;
 * memory outside the heap that waits to be collected gets free sooner, too. A
 * program that makes large structures besides, such as lists of many thousand
 * decoded objects, may use more processor time.
 *
 * It is a setting of the whole process, so the program decides and no part of
 * it: call it first.
 *
 * @returns Whether the runtime can do so at run time: Node can. On Deno,
 * `--v8-flags=--max-semi-space-size=2,--heap-growing-percent=50` does the same.
 *
 * @example A small container
 * ```ts
 * import { limitHeapGrowth, Operator } from "@coracle/operator";
 *
 * limitHeapGrowth();
 * const operator = new Operator({ cache: { budget: "200MiB" } });
 * ```
 */
export function limitHeapGrowth(): boolean {
  const { deno, bun } = process.versions as Record<string, string | undefined>;
  if (deno !== undefined || bun !== undefined) return false;
  // V8 reads these each time it would grow, unlike the sizes, which it reads
  // once. A factor of 1 is "by nothing".
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--heap-growing-percent=50");
  return true;
}
