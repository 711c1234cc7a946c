import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PROJECT, runCommand } from "../../tests/support/child_process.ts";
import { join } from "node:path";
import type { Measure } from "./bench.ts";

/** Path of the built rivals of `bench/go`. */
export const GO_RIVALS: string = join(PROJECT, ".cache", "bench", "rivals");
/**
 * Time limit of the build, which may have to fetch and compile client-go and
 * controller-runtime.
 */
const BUILD_LIMIT_MS = 20 * 60_000;

let built: Promise<boolean> | undefined;

/**
 * Builds the rivals in Go, once.
 *
 * @returns Whether they are available: false without a Go toolchain.
 * @throws {Error} If the build fails.
 */
export function buildGoRivals(): Promise<boolean> {
  built ??= build();
  return built;
}

async function build(): Promise<boolean> {
  const go = await runCommand(["go", "version"]);
  if (go.code !== 0) return false;
  const { code, stderr } = await runCommand(
    ["go", "build", "-trimpath", "-ldflags=-s -w", `-o=${GO_RIVALS}`, "."],
    { cwd: join(PROJECT, "bench", "go"), limit: BUILD_LIMIT_MS },
  );
  if (code !== 0) {
    throw new Error(`Cannot build the rivals in Go: received ${stderr}`);
  }
  return true;
}

/** Running rival. */
export interface GoRival {
  /**
   * Next line of its output, parsed as JSON.
   *
   * @throws {Error} If it ends before.
   */
  next(): Promise<unknown>;
  /** Closes its input, after an optional last text. */
  endInput(text?: string): void;
}

/** Starts a rival, which must have been built. */
export function startGoRival(...args: readonly string[]): GoRival {
  const child = spawn(GO_RIVALS, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    async next() {
      const { done, value } = await lines.next();
      if (done) {
        throw new Error(
          `Cannot hear from ${args[0]} in Go: it has ended: received no line`,
        );
      }
      return JSON.parse(value);
    },
    endInput: (text = "") => void child.stdin.end(text),
  };
}

/** Runs a rival that prints only its measures. */
export async function runGoRival(
  ...args: readonly string[]
): Promise<readonly Measure[]> {
  const rival = startGoRival(...args);
  rival.endInput();
  return await rival.next() as readonly Measure[];
}
