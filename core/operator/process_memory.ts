import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import process from "node:process";
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

/** What a machine says of memory. */
export interface SystemMemory {
  /** The machine's memory, in bytes. */
  readonly total: number;
  /** Reads the files of control groups. */
  readonly readFile: ReadFile;
  /** What the process uses: its resident set, in bytes. */
  used(): number;
}

const SYSTEM: SystemMemory = {
  total: totalmem(),
  readFile(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      // Not every system has control groups, and not every process may look.
      return undefined;
    }
  },
  used() {
    try {
      return process.memoryUsage.rss();
    } catch {
      return 0; // Where nobody may look, nothing is ever short.
    }
  },
};

/**
 * The budget of an operator's caches: as its options say, and otherwise a quarter
 * of what the process may use. It shrinks when the process comes near to the
 * limit of its memory, where there is one: that of its control group, or the one
 * that the options name.
 *
 * @param cache The options.
 * @param parts By which clock it is looked, and who is told.
 * @param system Where memory is read from.
 */
export function operatorBudget(
  cache: OperatorCacheOptions,
  parts: { readonly clock: Clock; readonly log: Logger },
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
      : new MemoryPressure({ limit: machine, used, ...parts }),
  });
}
