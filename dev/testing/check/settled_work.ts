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
  /** Programs that were started. */
  readonly programs: Programs;
  /** Real time that work outside of the simulation may take, in milliseconds. */
  readonly limit: number;
}

/**
 * Waits until promises, in-process I/O and imports have settled, and, within the limit,
 * what other threads and programs do and the files that are read.
 */
export async function settleWork(
  { activity, working, programs, limit }: SettlingWork,
): Promise<void> {
  let seen = -1;
  let quiet = 0;
  let waits = 0;
  let wereRunning = false;
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
    if (working() === 0) {
      const names = resources();
      const isRunning = programs.run(names);
      if (!isRunning && !readsFiles(names)) {
        if (!wereRunning) return;
        // The ends of their outputs are read next.
        wereRunning = false;
        quiet = 0;
        continue;
      }
      wereRunning = isRunning;
    }
    if (waits++ >= limit) return programs.forget();
    await realSleep(1);
  }
}

/** Names of what the process waits for; only known in Node. */
function resources(): readonly string[] {
  return process.getActiveResourcesInfo?.() ?? [];
}

/** Whether files are being read. */
function readsFiles(names: readonly string[]): boolean {
  return names.some((name) => name.startsWith("FSReq"));
}

/** Programs that were started since, in child processes. */
export class Programs {
  #known = programsOf(resources());

  /** Whether some run. */
  run(names: readonly string[]): boolean {
    return programsOf(names) > this.#known;
  }

  /** Forgets those that run now, as they may never end. */
  forget(): void {
    this.#known = programsOf(resources());
  }
}

function programsOf(names: readonly string[]): number {
  return names.filter((name) => name === "ProcessWrap").length;
}

/** Sleeps by the clock of the machine. */
export function realSleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => realSetTimeout(resolve, milliseconds));
}
