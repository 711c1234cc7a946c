/**
 * Programs as processes on an embedded API server, for tests of operators that
 * run when they are imported. A file of your own can export a function instead
 * and be tested with `withTestCluster`, as `reminder_test.ts` shows.
 *
 * @module
 */

import type { Client } from "@coracle/operator";
import { ApiServer } from "@coracle/dev/apiserver";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Limit of a wait in milliseconds, for a test that is stuck. */
const LIMIT_MS = 60_000;

/**
 * Waits until a condition holds.
 *
 * @param what Description of the condition, for the error.
 * @param condition Checked repeatedly; any value but undefined, null and false
 * ends the wait.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
): Promise<NonNullable<Exclude<T, false>>> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== null && value !== false) {
      return value as NonNullable<Exclude<T, false>>;
    }
    if (performance.now() > end) {
      throw new Error(`Not within ${LIMIT_MS} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Arguments with which this runtime runs a file. */
function runtimeArguments(): readonly string[] {
  if ("Deno" in globalThis) return ["run", "-A", "--no-check"];
  return process.execArgv.filter((arg) => arg.startsWith("--conditions"));
}

/** Program of this folder that runs until it is ended, with its output. */
export class Program {
  readonly #child: ChildProcess;
  readonly #file: string;
  #output = "";
  #code: number | undefined;

  /** Starts it with this runtime. */
  constructor(
    file: string,
    { args = [], env = {} }: {
      readonly args?: readonly string[];
      readonly env?: Readonly<Record<string, string | undefined>>;
    } = {},
  ) {
    this.#file = file;
    const path = fileURLToPath(new URL(file, import.meta.url));
    this.#child = spawn(
      process.execPath,
      [...runtimeArguments(), path, ...args],
      {
        env: {
          ...process.env,
          NO_COLOR: "1",
          NODE_TEST_CONTEXT: undefined,
          ...env,
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => this.#output += text);
    }
    this.#child.on("close", (code) => this.#code = code ?? -1);
  }

  /** Output so far. */
  get output(): string {
    return this.#output;
  }

  /** Waits until its output matches. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    return await until(`${this.#file} says ${pattern}`, () => {
      const found = pattern.exec(this.#output);
      if (found === null && this.#code !== undefined) {
        throw new Error(this.describe());
      }
      return found;
    });
  }

  /** Waits for its exit code. */
  async ended(): Promise<number> {
    await until(`${this.#file} ends`, () => this.#code !== undefined);
    return this.#code ?? -1;
  }

  /** Ends it by a signal, as a cluster does. @returns Its exit code. */
  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number> {
    const { pid } = this.#child;
    if (this.#code === undefined && pid !== undefined) {
      process.kill(pid, signal);
    }
    return await this.ended();
  }

  /** Kills it. */
  async kill(): Promise<void> {
    if (this.#code !== undefined) return;
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
  }

  /** State and the end of its output, for errors. */
  describe(): string {
    const state = this.#code === undefined
      ? "still runs"
      : `ended with ${this.#code}`;
    const tail = this.#output.slice(-8_000);
    return `${this.#file} ${state}, having written:\n${tail}`;
  }
}

/** Example that runs as a program, with its cluster. */
export interface RunningExample {
  /** Process of the example. */
  readonly program: Program;
  /** Client of an administrator of the cluster. */
  readonly client: Client;
  /** Path of the kubeconfig that the example uses. */
  readonly kubeconfig: string;
}

/**
 * Body of a test that runs an example against an embedded API server, and ends
 * it as a cluster would.
 *
 * @param file The example, in this folder.
 * @param body The test.
 * @param env Variables that the example reads.
 */
export function withExample(
  file: string,
  body: (example: RunningExample) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): () => Promise<void> {
  return async () => {
    const folder = await mkdtemp(join(tmpdir(), "coracle-example-"));
    const server = await ApiServer.start({ port: 0, simulate: true });
    try {
      const kubeconfig = join(folder, "kubeconfig");
      await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
      const program = new Program(file, {
        env: { ...env, KUBECONFIG: kubeconfig },
      });
      try {
        await program.says(/Operator started/);
        const { client } = server;
        await body({ program, client, kubeconfig }).catch((error) => {
          throw new Error(program.describe(), { cause: error });
        });
        const code = await program.end();
        if (code !== 0) throw new Error(program.describe());
      } finally {
        await program.kill();
      }
    } finally {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  };
}
