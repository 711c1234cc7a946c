import { appendFileSync, readFileSync } from "node:fs";

/**
 * A file in which processes note when their runs begin and end, and the test
 * when it stops or kills a process. Appending to a file is atomic, so that the
 * order of the lines is that of what happened, over all processes.
 */
export class RunJournal {
  readonly #path: string;

  /** @param path The file; made when there is something to note. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Notes that a run begins or ends. */
  note(what: "begins" | "ends", run: string, key: string): void {
    appendFileSync(this.#path, `${what} ${run} ${key}\n`);
  }

  /** Notes that a process does not run any more, for a while or for ever. */
  noteStop(who: string): void {
    appendFileSync(this.#path, `stops ${who}\n`);
  }

  /**
   * The runs that began while another process ran the same object. A process
   * that was stopped has lost its objects, as far as others are concerned.
   */
  get overlaps(): readonly string[] {
    const found: string[] = [];
    /** Which run there is of an object. */
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
