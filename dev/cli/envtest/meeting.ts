import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { isRunning } from "../serving.ts";

/** Number of attempts to open a caller's pipe, and the pause between them. */
const TRIES = 400;
const PAUSE_MS = 5;

/**
 * Folder in which the scripts `kube-apiserver` leave their command lines for the
 * process of etcd: one in the temporary folder for each port of etcd, which only
 * its user can read. A caller with the process ID `N` writes the file `N.args` and
 * reads the pipe `N.log` until it ends.
 */
export class Meeting {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Creates the folder for a port.
   *
   * @throws {Error} If the parent folder belongs to another user.
   */
  static open(port: number): Meeting {
    const user = process.getuid?.() ?? 0;
    const all = join(
      process.env["TMPDIR"] || "/tmp",
      `coracle-envtest-${user}`,
    );
    mkdirSync(all, { recursive: true, mode: 0o700 });
    const { uid } = lstatSync(all);
    if (uid !== user || !lstatSync(all).isDirectory()) {
      throw new Error(
        `Cannot start etcd: ${all} must be a folder of user ${user}: received one of user ${uid}`,
      );
    }
    const folder = join(all, String(port));
    // That of a process that was killed.
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, "pid"), `${process.pid}\n`);
    return new Meeting(folder);
  }

  /** First caller that waits; undefined without one. */
  nextCaller(): Caller | undefined {
    const file = readdirSync(this.#folder)
      .find((name) => name.endsWith(".args"));
    if (file === undefined) return undefined;
    const path = join(this.#folder, file);
    const args = readFileSync(path, "utf8").split("\0").slice(0, -1);
    rmSync(path);
    return new Caller({
      process: Number.parseInt(file),
      pipe: path.replace(/args$/, "log"),
      args,
    });
  }

  /** Removes the folder. */
  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Script `kube-apiserver` that waits for its server to end. */
export class Caller {
  /** Flags of kube-apiserver. */
  readonly args: readonly string[];
  readonly #process: number;
  readonly #pipe: string;
  #file: number | undefined;

  constructor(options: {
    readonly process: number;
    readonly pipe: string;
    readonly args: readonly string[];
  }) {
    this.args = options.args;
    this.#process = options.process;
    this.#pipe = options.pipe;
  }

  /**
   * Opens the pipe to the caller.
   *
   * @throws {Error} If the caller does not read it.
   */
  async answer(): Promise<void> {
    for (let tried = 0; this.#file === undefined; tried++) {
      try {
        // Without a reader this fails, where a blocking call would wait.
        this.#file = openSync(
          this.#pipe,
          constants.O_WRONLY | constants.O_NONBLOCK,
        );
        rmSync(this.#pipe);
      } catch (error) {
        if (tried >= TRIES || this.isGone()) throw error;
        await setTimeout(PAUSE_MS);
      }
    }
  }

  /** Whether the process of the caller has ended. */
  isGone(): boolean {
    return !isRunning(this.#process);
  }

  /** Writes a line to the caller's standard error. */
  say(line: string): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, `${line}\n`);
    } catch {
      // It has ended, or does not read: the line is lost.
    }
  }

  /** Ends the caller. */
  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}
