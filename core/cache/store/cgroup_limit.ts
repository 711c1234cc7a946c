export type ReadFile = (path: string) => string | undefined;

/** Mount points of the two versions of control groups. */
const V2_ROOT = "/sys/fs/cgroup";
const V1_ROOT = "/sys/fs/cgroup/memory";
/** Lowest value for no limit in cgroup v1, which reports 2⁶³ less a page. */
const V1_UNLIMITED = 2 ** 62;

/**
 * Memory limit of the control group of the process, in bytes; undefined if there
 * is none. Both versions of control groups are supported. The limits of all
 * parent groups apply, too, so the lowest is returned.
 *
 * @param readFile Reads `/proc/self/cgroup` and the files of the groups.
 */
export function cgroupMemoryLimit(readFile: ReadFile): number | undefined {
  const limits = [...limitFiles(readFile("/proc/self/cgroup") ?? "")]
    .map((path) => parseLimit(readFile(path)))
    .filter((limit) => limit !== undefined);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** Paths of the limit files of the process's control groups and their parents. */
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
 * Paths of a file in a control group and its parents. In a container, the group
 * itself is usually the mount point: its path on the host does not exist there,
 * and the file is in the mount point.
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

/** Share of the available memory that caches may use by default. */
const CACHE_SHARE = 0.25;
/** Minimum of the default budget: with less, caches would only thrash. */
const LEAST_BUDGET_BYTES = 16 * 1024 * 1024;

/**
 * Default memory budget of caches: a quarter of the limit of the control group
 * or of the memory of the machine, whichever is lower.
 *
 * @param machine Memory of the machine, in bytes.
 * @param readFile Reads files, as for {@linkcode cgroupMemoryLimit}.
 */
export function defaultCacheBudget(
  machine: number,
  readFile: ReadFile,
): number {
  const allowed = Math.min(cgroupMemoryLimit(readFile) ?? Infinity, machine);
  return Math.max(LEAST_BUDGET_BYTES, Math.floor(allowed * CACHE_SHARE));
}
