import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PROJECT, runCommand } from "../../tests/support/child_process.ts";
import { join } from "node:path";
import type { Measure } from "./bench.ts";

/** The rivals of `bench/go`, built. */
const PROGRAM = join(PROJECT, ".cache", "bench", "rivals");
/** From nothing, it fetches and compiles client-go and controller-runtime. */
const BUILD_LIMIT_MS = 20 * 60_000;

let built: Promise<boolean> | undefined;

/**
 * Builds the rivals that are written in Go, once.
 *
 * @returns Whether they are there: false where there is no Go toolchain.
 * @throws {Error} If there is one and the build fails.
 */
export function buildGoRivals(): Promise<boolean> {
  built ??= build();
  return built;
}

async function build(): Promise<boolean> {
  const go = await runCommand(["go", "version"]);
  if (go.code !== 0) return false;
  const { code, stderr } = await runCommand(
    ["go", "build", "-trimpath", "-ldflags=-s -w", `-o=${PROGRAM}`, "."],
    { cwd: join(PROJECT, "bench", "go"), limit: BUILD_LIMIT_MS },
  );
  if (code !== 0) {
    throw new Error(`Cannot build the rivals in Go: received ${stderr}`);
  }
  return true;
}

/** A rival that runs. */
export interface GoRival {
  /**
   * What it tells next, from one line of JSON.
   *
   * @throws {Error} If it ends before.
   */
  next(): Promise<unknown>;
  /** Ends its input, after a last text if one is given. */
  endInput(text?: string): void;
}

/** Starts a rival; it must have been built. */
export function startGoRival(...args: readonly string[]): GoRival {
  const child = spawn(PROGRAM, args, { stdio: ["pipe", "pipe", "inherit"] });
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

/** Runs a rival that tells nothing but its measures. */
export async function runGoRival(
  ...args: readonly string[]
): Promise<readonly Measure[]> {
  const rival = startGoRival(...args);
  rival.endInput();
  return await rival.next() as readonly Measure[];
}
