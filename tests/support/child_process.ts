import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Folder of the checkout. */
export const PROJECT: string = fileURLToPath(new URL("../..", import.meta.url));

/** Options of {@linkcode runCommand}. */
export interface CommandOptions {
  /**
   * The folder to run it in.
   *
   * @default {PROJECT}
   */
  readonly cwd?: string | undefined;
  /** Variables that are set beside the inherited ones. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Text for its standard input. */
  readonly input?: string | undefined;
  /**
   * Milliseconds after which it is killed.
   *
   * @default {60_000}
   */
  readonly limit?: number | undefined;
  /** Milliseconds without output after which it is killed; none by default. */
  readonly silence?: number | undefined;
}

/** How a command ended. */
export interface CommandResult {
  /** Exit code; 124 when it was killed by a limit, as `timeout` has it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Environment of child processes: the project's own runtimes are first in the
 * path, and the package's name resolves to its sources.
 */
export function childEnvironment(
  env: Readonly<Record<string, string | undefined>> = {},
): Record<string, string | undefined> {
  const bin = join(PROJECT, "node_modules", ".bin");
  return {
    ...process.env,
    NO_COLOR: "1",
    FORCE_COLOR: undefined,
    NODE_TEST_CONTEXT: undefined,
    PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
    NODE_OPTIONS:
      "--conditions=@coracle/source --disable-warning=ExperimentalWarning",
    BUN_OPTIONS: "--conditions=@coracle/source",
    ...env,
  };
}

const running: Set<ChildProcess> = new Set();

/** Kills everything that was started and still runs. */
export function killAll(): void {
  for (const child of running) killGroup(child);
}

/**
 * Starts a command in a process group of its own, so that it can be ended with
 * everything it started.
 */
export function startCommand(
  command: readonly string[],
  options: CommandOptions = {},
): ChildProcess {
  const { cwd = PROJECT, env, input } = options;
  const [file = "", ...args] = command;
  const child = spawn(file, args, {
    cwd,
    env: childEnvironment(env),
    detached: true,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.once("close", () => running.delete(child));
  child.stdin?.on("error", () => {}); // It may end without having read it all.
  child.stdin?.end(input);
  return child;
}

/** Kills a process of {@linkcode startCommand} with all its children. */
export function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The whole group has ended already.
  }
}

/** Runs a command to its end and collects its output. */
export async function runCommand(
  command: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const { limit = 60_000, silence } = options;
  const child = startCommand(command, options);
  let stdout = "";
  let stderr = "";
  let late = false;
  const kill = () => {
    late = true;
    killGroup(child);
  };
  const timer = setTimeout(kill, limit);
  const idle = silence === undefined ? undefined : setTimeout(kill, silence);
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    stdout += text;
    idle?.refresh();
  });
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    stderr += text;
    idle?.refresh();
  });
  try {
    const [code] = await once(child, "close");
    return { code: late ? 124 : code ?? 1, stdout, stderr };
  } catch (error) {
    return { code: 127, stdout, stderr: String(error) };
  } finally {
    clearTimeout(timer);
    clearTimeout(idle);
  }
}
