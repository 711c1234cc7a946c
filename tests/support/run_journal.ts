import { appendFileSync, readFileSync } from "node:fs";

/**
 * File in which processes record when their runs begin and end, and the test
 * when it stops or kills a process. Appending to a file is atomic, so the order
 * of the lines is the order of events over all processes.
 */
export class RunJournal {
  readonly #path: string;

  /** @param path Path of the file; created with its first line. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Records that a run begins or ends. */
  note(what: "begins" | "ends", run: string, key: string): void {
    appendFileSync(this.#path, `${what} ${run} ${key}\n`);
  }

  /** Records that a process was stopped or killed. */
  noteStop(identity: string): void {
    appendFileSync(this.#path, `stops ${identity}\n`);
  }

  /**
   * Runs that began while another process ran the same object. The runs of a
   * stopped process do not count.
   */
  get overlaps(): readonly string[] {
    const found: string[] = [];
    /** Present run of each object. */
    const runs = new Map<string, string>();
    for (const line of readFileSync(this.#path, "utf8").trim().split("\n")) {
      const [what, run = "", key = ""] = line.split(" ");
      const other = runs.get(key);
      if (what === "stops") {
        for (const [key, one] of runs) {
          if (one.startsWith(`${run}:`)) runs.delete(key);
        }
      } else if (what === "begins") {
        if (other !== undefined) found.push(`${key}: ${other}, then ${run}`);
        runs.set(key, run);
      } else if (other === run) runs.delete(key);
    }
    return found;
  }
}
