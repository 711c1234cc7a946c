/**
 * Processes of `coracle dev --watch`: one runs the operators of a file, and a spare
 * one has the modules of the framework loaded and waits for a change. After a change
 * the spare one loads the file. Then the previous one stops its controllers, and
 * answers webhooks until the new one has registered its own.
 *
 * @module
 */
import type { ChildProcess } from "node:child_process";
import { realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CodeWatcher } from "./changed_files.ts";
import type { Terminal } from "./command.ts";
import type { DevRun } from "./dev_run.ts";
import type { Order, Report } from "./dev_turn.ts";
import { startMain } from "./main_process.ts";
import { aborted } from "./serving.ts";

/** Time that a process has to end, in milliseconds. */
const STOP_TIMEOUT_MS = 12_000;
/** Files of the framework and of what it depends on. */
const FRAMEWORK =
  /[\\/]node_modules[\\/](?:@coracle[\\/]operator|undici|ws|yaml|zod)[\\/]/;
/** Folder of the framework in a checkout. */
const SOURCES = join(
  fileURLToPath(import.meta.resolve("@coracle/operator/core")),
  "..",
  "/",
);

/** A process of an operator file, which is ended by its id. */
export class OperatorProcess {
  /** Resolves with the exit code; null after a signal. */
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  #hasExited = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Follows a process that has been started. */
  constructor(child: ChildProcess) {
    this.#child = child;
    // A second signal ends this process by exit().
    process.once("exit", this.kill);
    this.exited = new Promise<number | null>((resolve, reject) => {
      child.once("exit", resolve);
      child.once("error", reject);
    }).finally(() => {
      this.#hasExited = true;
      clearTimeout(this.#timer);
      process.off("exit", this.kill);
    });
  }

  /** Kills it; safe to call after its end. */
  readonly kill = (): void => this.#signal("SIGKILL");

  /** Asks it to end, and kills it if it does not. */
  end(because?: unknown): void {
    // At a terminal, Ctrl-C has reached it as well.
    if (because !== "SIGINT" || !process.stdin.isTTY) {
      this.#signal("SIGTERM");
    }
    this.#timer ??= setTimeout(this.kill, STOP_TIMEOUT_MS);
  }

  #signal(name: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.#child;
    if (this.#hasExited || pid === undefined) return;
    try {
      // On Deno child.kill() signals only once, and closes the channel of orders.
      process.kill(pid, name);
    } catch (error) {
      // It has ended, which is not yet known here.
      if ((error as { readonly code?: string }).code !== "ESRCH") throw error;
    }
  }
}

/** A process that takes its turn. */
class TurnProcess extends OperatorProcess {
  /** Files that it has loaded. */
  readonly files: Set<string> = new Set();
  /** Resolves when it waits for its turn. */
  readonly ready: Promise<void>;
  /** Resolves when its controllers have stopped. */
  readonly left: Promise<void>;
  /** Whether it has the order to load the file. */
  runs = false;
  /** Whether the file is loaded, and its operators are to start. */
  isLoaded = false;
  /** Whether it has the order to stop its controllers. */
  leaves = false;
  /** Whether a port of the file was in use. */
  isOccupied = false;
  readonly #child: ChildProcess;

  constructor(child: ChildProcess, reported: (report: Report) => void) {
    super(child);
    this.#child = child;
    const ready = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.left = left.promise;
    child.on("message", (message) => {
      const report = message as Report;
      if (report.report === "ready") ready.resolve();
      else if (report.report === "left") left.resolve();
      else if (report.report === "occupied") this.isOccupied = true;
      else if (report.report === "files") {
        for (const file of report.files) this.files.add(file);
      }
      reported(report);
    });
  }

  order(order: Order): void {
    // It may have ended.
    this.#child.send(order, () => {});
  }
}

/** Options of {@linkcode runWatched}. */
interface WatchOptions {
  readonly interrupts: AbortSignal;
  readonly terminal: Terminal;
}

/** Runs an operator file, again after each change of its code, until interrupted. */
export async function runWatched(
  file: string,
  run: DevRun,
  { interrupts, terminal }: WatchOptions,
): Promise<number> {
  let isWatched = true;
  const code = new CodeWatcher((files) => void turns.change(files), (error) => {
    if (!isWatched) return;
    isWatched = false;
    terminal.say(
      `Cannot watch all folders, so not each change of the code restarts the operator: ${error.message}\n`,
    );
  });
  const path = await realpath(file);
  const turns = new Turns(file, run, { path, code, terminal });
  await code.addTree(dirname(path));
  try {
    await turns.replace();
    await aborted(interrupts);
  } finally {
    code.close();
    await turns.end(interrupts.reason);
  }
  return 0;
}

/** Processes of a file, which run its operators one after the other. */
class Turns {
  readonly #file: string;
  /** Path of the file without links. */
  readonly #path: string;
  readonly #run: DevRun;
  readonly #code: CodeWatcher;
  readonly #terminal: Terminal;
  readonly #all: Set<TurnProcess> = new Set();
  /** Process whose operators have started last. */
  #current: TurnProcess | undefined;
  /** Process that loads the file and starts its operators. */
  #next: TurnProcess | undefined;
  /** Process that waits for a change. */
  #spare: TurnProcess | undefined;
  /** Whether the last process failed: then any file of code may be the cause. */
  #hasFailed = false;
  /** Whether the file has a port, so that its processes cannot overlap. */
  #overlaps = true;
  #isEnding = false;
  #replacing: Promise<void> = Promise.resolve();

  constructor(
    file: string,
    run: DevRun,
    deps: {
      readonly path: string;
      readonly code: CodeWatcher;
      readonly terminal: Terminal;
    },
  ) {
    this.#file = file;
    this.#path = deps.path;
    this.#run = run;
    this.#code = deps.code;
    this.#terminal = deps.terminal;
  }

  /** Follows a change of files of code. */
  async change(files: readonly string[]): Promise<void> {
    const used = files.filter((file) =>
      this.#hasFailed || file === this.#path ||
      this.#current?.files.has(file) ||
      this.#next?.files.has(file)
    );
    // A spare process that has loaded the file has its old text.
    if (files.some((file) => this.#spare?.files.has(file))) {
      this.#spare?.kill();
      this.#spare = undefined;
    }
    const [first] = used;
    if (first === undefined) return;
    this.#terminal.say(`${relative("", first)} has changed.\n`);
    await this.replace();
  }

  /** Lets a process load the file in place of the current one. */
  replace(): Promise<void> {
    this.#replacing = this.#replacing.then(() => this.#replace())
      .catch((error: unknown) =>
        this.#terminal.say(`Cannot start the operator: ${error}\n`)
      );
    return this.#replacing;
  }

  async #replace(): Promise<void> {
    if (this.#isEnding) return;
    if (this.#next !== undefined) {
      // One that waits for its modules reads the file as it is then.
      if (!this.#next.runs && this.#all.has(this.#next)) return;
      const next = this.#next;
      this.#next = undefined;
      // One that has begun to start has a Lease, ports and perhaps webhooks.
      if (next.isLoaded) await this.#leave(next);
      else {
        next.kill();
        await next.exited;
      }
    }
    if (!this.#overlaps && this.#current !== undefined) {
      const current = this.#current;
      this.#current = undefined;
      current.end();
      await current.exited;
    }
    const next = this.#spare ?? await this.#start();
    this.#spare = undefined;
    this.#next = next;
    void next.ready.then(() => {
      if (next !== this.#next) return;
      next.runs = true;
      next.order({ order: "run" });
    });
  }

  /** Ends all processes. */
  async end(because: unknown): Promise<void> {
    this.#isEnding = true;
    await this.#replacing;
    const all = [...this.#all];
    for (const one of all) {
      if (one.runs) one.end(because);
      else one.kill();
    }
    await Promise.all(all.map(({ exited }) => exited));
  }

  async #start(): Promise<TurnProcess> {
    const preload = [...this.#current?.files ?? []]
      .filter((file) => FRAMEWORK.test(file) || file.startsWith(SOURCES));
    const child = await startMain({
      task: "dev",
      file: this.#file,
      run: this.#run,
      preload,
    });
    const one: TurnProcess = new TurnProcess(child, (report) => {
      if (report.report === "files") void this.#code.addFiles(report.files);
      else if (report.report === "loaded") void this.#loaded(one);
      else if (report.report === "started") this.#started(one, report.policies);
    });
    this.#all.add(one);
    one.exited.then(() => this.#exited(one), (error: unknown) => {
      this.#terminal.say(`Cannot start the operator: ${error}\n`);
      this.#exited(one);
    });
    return one;
  }

  /** Lets the operators start when the previous ones have stopped. */
  async #loaded(next: TurnProcess): Promise<void> {
    next.isLoaded = true;
    if (this.#current !== undefined) await this.#leave(this.#current);
    if (next === this.#next) next.order({ order: "start" });
  }

  /** Stops the controllers of a process, which goes on to answer webhooks. */
  async #leave(one: TurnProcess): Promise<void> {
    if (!one.leaves) one.order({ order: "leave" });
    one.leaves = true;
    const timer = setTimeout(one.kill, STOP_TIMEOUT_MS);
    await Promise.race([one.left, one.exited]).catch(() => {});
    clearTimeout(timer);
  }

  #started(next: TurnProcess, policies: readonly string[]): void {
    if (next !== this.#next) return;
    this.#current = next;
    this.#next = undefined;
    this.#hasFailed = false;
    for (const one of this.#all) {
      if (one.leaves) one.order({ order: "end", policies });
    }
    void this.#prepare();
  }

  async #prepare(): Promise<void> {
    if (this.#isEnding || this.#spare !== undefined) return;
    const spare = await this.#start();
    if (this.#isEnding || this.#spare !== undefined) spare.kill();
    else this.#spare = spare;
  }

  #exited(one: TurnProcess): void {
    this.#all.delete(one);
    if (this.#isEnding) return;
    if (one === this.#spare) this.#spare = undefined;
    const { say } = this.#terminal;
    if (one === this.#current) {
      this.#current = undefined;
      this.#hasFailed = true;
      if (this.#next === undefined) say("Waiting for a change of the file.\n");
    }
    if (one !== this.#next) return;
    this.#next = undefined;
    this.#hasFailed = true;
    if (one.isOccupied && this.#overlaps && this.#current !== undefined) {
      this.#overlaps = false;
      say("The previous operator has the port, so it is ended first.\n");
      void this.replace();
      return;
    }
    say(
      this.#current === undefined
        ? "Waiting for a change of the file.\n"
        : this.#current.leaves
        ? "Waiting for a change of the file. The previous code answers webhooks.\n"
        : "Waiting for a change of the file. The previous operator goes on.\n",
    );
    void this.#prepare();
  }
}
