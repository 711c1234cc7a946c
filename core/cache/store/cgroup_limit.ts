/** Gives the text of a file, or undefined if there is none. */
export type ReadFile = (path: string) => string | undefined;

/** Where the two versions of control groups are mounted. */
const V2_ROOT = "/sys/fs/cgroup";
const V1_ROOT = "/sys/fs/cgroup/memory";
/** What version 1 says when there is no limit: 2⁶³ rounded down to a page. */
const V1_UNLIMITED = 2 ** 62;

/**
 * The memory limit of the control group that the process is in, in bytes, or
 * undefined where there is none. Both versions are understood; the limits of
 * all groups around hold, so the lowest counts.
 *
 * @param readFile Reads `/proc/self/cgroup` and the files of the groups.
 */
export function cgroupMemoryLimit(readFile: ReadFile): number | undefined {
  const limits = [...limitFiles(readFile("/proc/self/cgroup") ?? "")]
    .map((path) => parseLimit(readFile(path)))
    .filter((limit) => limit !== undefined);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** The limit files of the process's groups and of those around them. */
function* limitFiles(cgroup: string): Generator<string> {
  for (const line of cgroup.split("\n")) {
    // `0::/path` in version 2, `7:memory,…:/path` in version 1.
    const [number, controllers = "", ...rest] = line.split(":");
    const path = rest.join(":");
    if (number === "0" && controllers === "") {
      yield* upwards(V2_ROOT, path, "memory.max");
    } else if (controllers.split(",").includes("memory")) {
      yield* upwards(V1_ROOT, path, "memory.limit_in_bytes");
    }
  }
}

/**
 * In a container the group's own root is usually mounted at the top, so that the
 * path of the host leads nowhere; the top itself is then the right one.
 */
function* upwards(root: string, path: string, file: string): Generator<string> {
  const parts = path.split("/").filter((part) => part !== "" && part !== "..");
  for (let length = parts.length; length >= 0; length--) {
    yield [root, ...parts.slice(0, length), file].join("/");
  }
}

function parseLimit(text: string | undefined): number | undefined {
  const digits = text?.trim() ?? "";
  if (!/^\d+$/.test(digits)) return undefined; // absent, or "max"
  const limit = Number(digits);
  return limit === 0 || limit >= V1_UNLIMITED ? undefined : limit;
}

/** What of the memory that there is a cache may use by default. */
const CACHE_SHARE = 0.25;
/** A budget below this would only thrash. */
const LEAST_BUDGET = 16 * 1024 * 1024;

/**
 * The budget of caches when none is given: a quarter of what the process may
 * use, which is the limit of its control group or the machine's memory.
 *
 * @param machine The machine's memory in bytes.
 * @param readFile For {@linkcode cgroupMemoryLimit}.
 */
export function defaultCacheBudget(
  machine: number,
  readFile: ReadFile,
): number {
  const limit = cgroupMemoryLimit(readFile) ?? Infinity;
  const allowed = Math.min(limit, machine);
  return Math.max(LEAST_BUDGET, Math.floor(allowed * CACHE_SHARE));
}
