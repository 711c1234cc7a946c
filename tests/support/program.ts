import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import type { CommandOptions } from "./child_process.ts";
import { killGroup, PROJECT, startCommand } from "./child_process.ts";
import { until } from "./until.ts";

/** The runtime that runs the tests. */
export const RUNTIME: "node" | "deno" | "bun" = "Deno" in globalThis
  ? "deno"
  : "Bun" in globalThis
  ? "bun"
  : "node";

/** How the runtime of the tests, or another one, runs a file. */
export function runtimeCommand(
  runtime: "node" | "deno" | "bun" = RUNTIME,
): readonly string[] {
  return {
    node: ["node"],
    deno: ["deno", "run", "-A", "--no-check"],
    bun: ["bun"],
  }[runtime];
}

/** The command line of the project, from its sources. */
export function coracle(...args: readonly string[]): readonly string[] {
  const bin = join(PROJECT, "cli", "bin.ts");
  return [...runtimeCommand(), bin, ...args];
}

/** A program that goes on until it is ended, and what it has written. */
export class Program {
  readonly #child: ChildProcess;
  readonly #command: readonly string[];
  #output = "";
  #code: number | undefined;

  /** Starts it. */
  constructor(command: readonly string[], options: CommandOptions = {}) {
    this.#command = command;
    this.#child = startCommand(command, options);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => this.#output += text);
    }
    this.#child.on("close", (code) => this.#code = code ?? -1);
    this.#child.on("error", (error) => {
      this.#output += String(error);
      this.#code = -1;
    });
  }

  /** What it has written so far. */
  get output(): string {
    return this.#output;
  }

  /** Its exit code; undefined while it runs, -1 if a signal ended it. */
  get code(): number | undefined {
    return this.#code;
  }

  /** Waits until it has written something. */
  async says(pattern: RegExp, within = 20_000): Promise<RegExpExecArray> {
    return await until(`${this.#name} says ${pattern}`, () => {
      const found = pattern.exec(this.#output);
      if (found === null && this.#code !== undefined) {
        throw new Error(this.describe());
      }
      return found;
    }, { within }).catch((error: unknown) => {
      throw new Error(this.describe(), { cause: error });
    });
  }

  /** Asks it to end, as Ctrl-C or a cluster would, and gives its exit code. */
  async end(
    signal: "SIGINT" | "SIGTERM" | "SIGKILL" = "SIGTERM",
    within = 20_000,
  ): Promise<number> {
    if (this.#code === undefined && this.#child.pid !== undefined) {
      process.kill(this.#child.pid, signal);
    }
    try {
      await until(`${this.#name} ends`, () => this.#code !== undefined, {
        within,
      });
    } catch (error) {
      throw new Error(this.describe(), { cause: error });
    }
    return this.#code ?? -1;
  }

  /** Sends it a signal, such as one to stand still or to go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    if (this.#child.pid !== undefined) process.kill(this.#child.pid, name);
  }

  /** Ends it and all it has started, at once. */
  async kill(): Promise<void> {
    if (this.#code !== undefined) return;
    const closed = once(this.#child, "close");
    killGroup(this.#child);
    await closed;
  }

  /** What it is, how it stands, and the end of what it has written. */
  describe(): string {
    const state = this.#code === undefined
      ? "still runs"
      : `ended with ${this.#code}`;
    return `${this.#name} ${state}, having written:\n${
      this.#output.slice(-8_000)
    }`;
  }

  get #name(): string {
    return this.#command.join(" ");
  }
}
