import process from "node:process";
import { modulesLoaded, nextTurn } from "@coracle/operator/internal";

/** Event-loop turns without activity after which work has settled. */
const QUIET_TURNS = 4;
/** Maximum number of turns that are waited for. */
const MAX_TURNS = 5_000;

// As they were when the module was loaded: simulations replace the global ones.
const realSetTimeout = globalThis.setTimeout;

/** Work whose end is waited for. */
export interface SettlingWork {
  /** Number that grows with each sign of activity. */
  readonly activity: () => number;
  /** Number of calls in progress on other threads. */
  readonly working: () => number;
  /** Real time that work on other threads may take, in milliseconds. */
  readonly limit: number;
}

/**
 * Waits until promises, in-process I/O and imports have settled, and, within the limit,
 * what other threads do and the files that are read.
 */
export async function settleWork(
  { activity, working, limit }: SettlingWork,
): Promise<void> {
  let seen = -1;
  let quiet = 0;
  let waits = 0;
  for (let turns = 0; turns < MAX_TURNS; turns++) {
    await nextTurn();
    const now = activity();
    quiet = now === seen ? quiet + 1 : 0;
    seen = now;
    if (quiet < QUIET_TURNS) continue;
    const modules = modulesLoaded();
    if (modules !== undefined) {
      await modules;
      quiet = 0;
      continue;
    }
    if (working() === 0 && !readsFiles() || waits++ >= limit) return;
    await realSleep(1);
  }
}

/** Whether files are being read; only known in Node. */
function readsFiles(): boolean {
  return process.getActiveResourcesInfo?.().some((name) =>
    name.startsWith("FSReq")
  ) ?? false;
}

/** Sleeps by the clock of the machine. */
export function realSleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => realSetTimeout(resolve, milliseconds));
}
