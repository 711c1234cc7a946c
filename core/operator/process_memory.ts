import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { defaultCacheBudget } from "../cache/cgroup_limit.ts";

/** The bytes that the caches of this process may use when nobody says. */
export function cacheBudgetOfProcess(): number {
  return defaultCacheBudget(totalmem(), (path) => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      // Not every system has control groups, and not every process may look.
      return undefined;
    }
  });
}
