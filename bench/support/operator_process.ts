import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { PROJECT } from "../../tests/support/child_process.ts";
import { statFields } from "./tree_usage.ts";

/** Answer of an operator to the line `usage`. */
interface Answer {
  /** Processor time of all threads since its start, in microseconds. */
  readonly cpu: number;
  readonly pid: number;
}

/** Resource usage of an operator so far. */
export interface OperatorUsage {
  /** Processor time of all threads since its start, in microseconds. */
  readonly cpu: number;
  /** Peak RSS in MiB. */
  readonly peak: number;
}

/**
 * Operator in a process of its own. It answers each line of its input with one
 * line of JSON, its usage: the line `usage` immediately, the line `write ROUND`
 * after it has written the status of every object. It ends with its input.
 */
export class OperatorProcess {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(command: readonly string[]) {
    const [program = "", ...args] = command;
    this.#child = spawn(program, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(PROJECT, ".cache", "node"),
      },
    });
    this.#answers = createInterface({
      input: this.#child.stdout as NodeJS.ReadableStream,
    })[
      Symbol.asyncIterator
    ]();
  }

  /**
   * Sends a line and waits for the answer.
   *
   * @throws {Error} If the process has ended.
   */
  async ask(line: string): Promise<OperatorUsage> {
    this.#child.stdin?.write(`${line}\n`);
    const { done, value } = await this.#answers.next();
    if (done) {
      throw new Error(
        `Cannot measure ${this.#child.spawnfile}: it has ended with ${this.#child.exitCode}`,
      );
    }
    const { cpu, pid } = JSON.parse(value) as Answer;
    return { cpu, peak: peakRssOf(pid) };
  }

  /** Ends its input and waits for its end. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.stdin?.end();
    await exit;
  }
}

/**
 * Peak RSS of a process in MiB. The kernel's file says it, since `maxrss` of a
 * new process includes the memory of the process that started it.
 */
function peakRssOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/**
 * Processor time of another process so far, in microseconds; its resolution is
 * 10 ms.
 */
export function cpuTimeOf(pid: number): number {
  const [user = 0, system = 0] = statFields(pid).slice(11);
  return (user + system) * 10_000;
}
