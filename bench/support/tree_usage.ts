import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks of a second in `/proc`, the same on all machines. */
const TICKS = 100;
/** Size of a page of memory, in bytes. */
const PAGE = 4_096;

/** What a process and its descendants use. */
export interface TreeUsage {
  /** Processor time so far, in seconds, with that of processes that have ended. */
  readonly cpu: number;
  /** Memory, in MiB: shared pages count for each process. */
  readonly rss: number;
  /** Memory of the process that was started last, in MiB. */
  readonly newest: number;
  /** Number of processes. */
  readonly count: number;
}

/** Returns what a process and its descendants use; on Linux only. */
export function treeUsage(root: number): TreeUsage {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(name) ?? []);
  const tree = new Set([root]);
  // A parent is older than its children, yet identifiers may start over.
  for (let size = 0; size < tree.size;) {
    size = tree.size;
    for (const { pid, parent } of processes) {
      if (tree.has(parent)) tree.add(pid);
    }
  }
  const own = processes.filter(({ pid }) => tree.has(pid));
  return {
    cpu: own.reduce((sum, { ticks }) => sum + ticks, 0) / TICKS,
    rss: own.reduce((sum, { pages }) => sum + pages, 0) * PAGE / 2 ** 20,
    newest: (own.toSorted((a, b) => b.pid - a.pid)[0]?.pages ?? 0) * PAGE /
      2 ** 20,
    count: own.length,
  };
}

function statOf(name: string) {
  let fields: readonly number[];
  try {
    fields = statFields(Number(name));
  } catch {
    return undefined; // It has ended.
  }
  const [, parent = 0] = fields;
  const ticks = fields.slice(11, 15).reduce((sum, value) => sum + value, 0);
  return { pid: Number(name), parent, ticks, pages: fields[21] ?? 0 };
}

/** Fields of `/proc/PID/stat` after the name, beginning with the state. */
export function statFields(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program may have spaces and parentheses.
  return text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
}
