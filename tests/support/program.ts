/**
 * Programs in processes of their own: start, read the output, freeze, end, kill.
 *
 * @module
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import type { CommandOptions } from "./child_process.ts";
import { killGroup, PROJECT, startCommand } from "./child_process.ts";
import { until } from "./until.ts";

/** Runtime of the tests. */
export const RUNTIME: "node" | "deno" | "bun" = "Deno" in globalThis
  ? "deno"
  : "Bun" in globalThis
  ? "bun"
  : "node";

/** Command by which a runtime runs a file. */
export function runtimeCommand(
  runtime: "node" | "deno" | "bun" = RUNTIME,
): readonly string[] {
  return {
    node: ["node"],
    deno: ["deno", "run", "-A", "--no-check"],
    bun: ["bun"],
  }[runtime];
}

/** Command of the project's command line from its sources. */
export function coracle(...args: readonly string[]): readonly string[] {
  const bin = join(PROJECT, "dev", "cli", "bin.ts");
  return [...runtimeCommand(), bin, ...args];
}

/** Program that runs until it is ended, with its output. */
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

  /** Output so far. */
  get output(): string {
    return this.#output;
  }

  /** Its process ID; 0 if it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Its exit code; undefined while it runs, -1 if a signal ended it. */
  get code(): number | undefined {
    return this.#code;
  }

  /** Waits until its output matches. */
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

  /** Ends it by a signal, as Ctrl-C or a cluster does. @returns Its exit code. */
  async end(
    signal: "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGKILL" = "SIGTERM",
    within?: number,
  ): Promise<number> {
    if (this.#code === undefined && this.#child.pid !== undefined) {
      process.kill(this.#child.pid, signal);
    }
    return await this.ended(within);
  }

  /** Waits until it has ended by itself. @returns Its exit code. */
  async ended(within = 20_000): Promise<number> {
    await until(`${this.#name} ends`, () => this.#code !== undefined, {
      within,
    }).catch((error: unknown) => {
      throw new Error(this.describe(), { cause: error });
    });
    return this.#code ?? -1;
  }

  /** Freezes or continues it. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    if (this.#child.pid !== undefined) process.kill(this.#child.pid, name);
  }

  /** Kills it with all its children. */
  async kill(): Promise<void> {
    if (this.#code !== undefined) return;
    const closed = once(this.#child, "close");
    killGroup(this.#child);
    await closed;
  }

  /** Command, state and the end of its output, for errors. */
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
