import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseByteSize } from "../api/byte_size.ts";
import {
  cgroupMemoryLimit,
  defaultCacheBudget,
  type ReadFile,
} from "../cache/store/cgroup_limit.ts";
import { MemoryBudget } from "../cache/store/memory_budget.ts";
import { MemoryPressure } from "../cache/store/memory_pressure.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { OperatorCacheOptions } from "./operator_options.ts";

/** Memory of the machine and of the process. */
export interface SystemMemory {
  /** Memory of the machine, in bytes. */
  readonly total: number;
  /** Function that reads a file of the control group. */
  readonly readFile: ReadFile;
  /** Returns the resident memory of the process, in bytes. */
  used(): number;
}

/** Memory as the system reports it. */
export const SYSTEM: SystemMemory = {
  // Deno asks for a permission, which a program with a client alone may lack.
  get total() {
    return totalmem();
  },
  readFile(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      // The system has no control groups, or the process may not read them.
      return undefined;
    }
  },
  used() {
    try {
      return process.memoryUsage.rss();
    } catch {
      return 0; // Unknown: memory then never counts as short.
    }
  },
};

/**
 * Creates the memory budget for the caches of an operator. Without an option it
 * is a quarter of the memory available to the process. It shrinks when the
 * process gets close to its memory limit, if there is one: that of the options,
 * or of the control group.
 */
export function operatorBudget(
  cache: OperatorCacheOptions,
  deps: { readonly clock: Clock; readonly log: Logger },
  system: SystemMemory = SYSTEM,
): MemoryBudget {
  const { total, readFile } = system;
  const { budget, memoryLimit = cgroupMemoryLimit(readFile) ?? false } = cache;
  const limit = memoryLimit === false ? undefined : parseByteSize(memoryLimit);
  const machine = Math.min(total, limit ?? Infinity);
  const used = () => system.used();
  return new MemoryBudget(budget ?? defaultCacheBudget(machine, readFile), {
    pressure: limit === undefined
      ? undefined
      : new MemoryPressure({ limit: machine, used, ...deps }),
  });
}

/** Function that V8 gives to new contexts with `--expose-gc`. */
type CollectGarbage = (
  options: { readonly type: string; readonly flavor: string },
) => void;

/**
 * Limits the growth of the V8 heap: the garbage collector then runs before the
 * heap grows. What the heap has grown by so far is returned to the system, in
 * some 50 ms.
 *
 * By default V8 lets the young generation grow to about 60 to 100 MiB and the
 * old generation to several times its live size, for programs with many
 * long-lived objects. The objects of an operator are short-lived, because its
 * caches are outside the heap, in their memory budget. An operator therefore
 * does not suffer from a young generation that does not grow, and an old one
 * that is collected when it has grown by half; memory outside the heap is
 * released earlier as well. A program that also builds large structures, such
 * as lists of many thousand decoded objects, may need more processor time.
 *
 * The setting applies to the whole process and until its end. Call this
 * function first, from the program itself and not from a library.
 *
 * @returns Whether the runtime supports this at run time: Node does. On Deno,
 * `--v8-flags=--max-semi-space-size=4,--heap-growing-percent=50` has the same
 * effect.
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
  // V8 reads these flags whenever the heap is about to grow, in contrast to the
  // sizes, which it reads once. A factor of 1 means no growth.
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--heap-growing-percent=50");
  shrinkYoungGeneration();
  return true;
}

/**
 * Shrinks the young generation, which the loading of a program lets grow to 16 MiB
 * and the same again for its copy: only a collection as for want of memory does.
 */
function shrinkYoungGeneration(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as CollectGarbage;
  if (!("gc" in globalThis)) setFlagsFromString("--no-expose-gc");
  collect({ type: "major", flavor: "last-resort" });
}
