import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PROJECT, runCommand } from "../../tests/support/child_process.ts";
import type { Measure } from "./bench.ts";

/** Program that builds rivals in another language. */
export type Toolchain = "go" | "cargo" | "mvn";

/** Rivals in one language. */
interface Language {
  /** Folder of the sources, in `bench`. */
  readonly folder: string;
  /** Programs that must be installed, and how they say their version. */
  readonly programs: readonly (readonly string[])[];
  readonly build: readonly string[];
  readonly run: readonly string[];
}

const BUILT = join(PROJECT, ".cache", "bench");

/** Builds use one core, since they take minutes beside other work. */
const LANGUAGES: Readonly<Record<Toolchain, Language>> = {
  go: {
    folder: "go",
    programs: [["go", "version"]],
    build: [
      "go",
      "build",
      "-p=1",
      "-trimpath",
      "-ldflags=-s -w",
      `-o=${join(BUILT, "rivals")}`,
      ".",
    ],
    run: [join(BUILT, "rivals")],
  },
  cargo: {
    folder: "rust",
    programs: [["cargo", "--version"]],
    build: [
      "cargo",
      "build",
      "--release",
      "--locked",
      "--jobs=1",
      `--target-dir=${join(BUILT, "rust")}`,
    ],
    run: [join(BUILT, "rust", "release", "bench")],
  },
  mvn: {
    folder: "java",
    programs: [["java", "-version"], ["mvn", "--version"]],
    build: ["mvn", "--batch-mode", "--quiet", "package"],
    run: [
      "java",
      "-cp",
      `${join(BUILT, "java", "bench.jar")}:${join(BUILT, "java", "lib", "*")}`,
      "bench.Main",
    ],
  },
};

/** All toolchains. */
export const TOOLCHAINS = Object.keys(LANGUAGES) as readonly Toolchain[];

/**
 * Time limit of a build, which may have to fetch and compile hundreds of
 * packages.
 */
const BUILD_LIMIT_MS = 30 * 60_000;

const built: Map<Toolchain, Promise<string | undefined>> = new Map();

/**
 * Builds the rivals of a toolchain, once.
 *
 * @returns The reason why they are not available, such as `no cargo`; undefined
 * if they are.
 * @throws {Error} If the build fails.
 */
export function buildRivals(toolchain: Toolchain): Promise<string | undefined> {
  const building = built.get(toolchain) ?? build(LANGUAGES[toolchain]);
  built.set(toolchain, building);
  return building;
}

async function build(language: Language): Promise<string | undefined> {
  for (const command of language.programs) {
    const found = await runCommand(command).catch(() => ({ code: 127 }));
    if (found.code !== 0) return `no ${command[0]}`;
  }
  const { code, stdout, stderr } = await runCommand(
    ["nice", ...language.build],
    {
      cwd: join(PROJECT, "bench", language.folder),
      limit: BUILD_LIMIT_MS,
    },
  );
  if (code === 0) return undefined;
  throw new Error(
    `Cannot build the rivals of bench/${language.folder}: received ${stdout}${stderr}`,
  );
}

/** Command that runs a rival of a toolchain, which must have been built. */
export function rivalCommand(
  toolchain: Toolchain,
  ...args: readonly string[]
): readonly string[] {
  return [...LANGUAGES[toolchain].run, ...args];
}

/** Running rival. */
export interface Rival {
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
export function startRival(
  toolchain: Toolchain,
  ...args: readonly string[]
): Rival {
  const [program = "", ...all] = rivalCommand(toolchain, ...args);
  const child = spawn(program, all, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    async next() {
      const { done, value } = await lines.next();
      if (done) {
        throw new Error(
          `Cannot measure ${
            args[0]
          } of ${toolchain}: it has ended: received no line`,
        );
      }
      return JSON.parse(value);
    },
    endInput: (text = "") => void child.stdin.end(text),
  };
}

/** Runs a rival that prints only its measures. */
export async function runRival(
  toolchain: Toolchain,
  ...args: readonly string[]
): Promise<readonly Measure[]> {
  const rival = startRival(toolchain, ...args);
  rival.endInput();
  return await rival.next() as readonly Measure[];
}
