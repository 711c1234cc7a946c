import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import process from "node:process";
import { escaped } from "../api/input.ts";
import { type Clock, deadline } from "../clock.ts";

/** How a program is run, and what it may use. */
export interface ProgramOptions {
  readonly args: readonly string[];
  /** Variables that are added to those of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Folder in which it runs. Defaults to that of this process. */
  readonly cwd?: string | undefined;
  /** Text of its standard input; by default that is empty. */
  readonly input?: string | undefined;
  /** Time limit, in milliseconds. */
  readonly timeout: number;
  /** Maximum size of its standard output, in bytes. */
  readonly maxOutput: number;
  readonly clock: Clock;
  /** Signal that ends the program. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether it uses the terminal of this process: then it shares its standard
   * input, and is not killed together with its children.
   */
  readonly interactive?: boolean | undefined;
  /** Text for the error if the program is not installed. */
  readonly installHint?: string | undefined;
  /**
   * Whether its standard error is kept for the error of a failure; by default that
   * of this process is shared, so that users see its messages.
   */
  readonly keepsErrors?: boolean | undefined;
  /** Creates the error for a reason, such as `is not installed: received ENOENT`. */
  readonly failure: (why: string) => Error;
}

/** Size of the end of the standard error that is kept, in bytes. */
const KEPT_BYTES = 4_096;

/**
 * Runs a program, without a shell, until it ends.
 *
 * @returns Its standard output.
 * @throws {Error} By `failure`, if the program is not installed, fails, prints too
 * much or exceeds its time limit; it is then killed with its children. No error
 * has its arguments, its input or its output.
 * @throws The reason of the signal, if that fires.
 */
export function runProgram(
  command: string,
  options: ProgramOptions,
): Promise<string> {
  const { interactive = false, keepsErrors, failure, timeout } = options;
  const { args, cwd, input, maxOutput, clock, signal } = options;
  const run = (ended: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      const child = started(() =>
        spawn(command, [...args], {
          cwd,
          env: { ...process.env, ...options.env },
          stdio: [
            interactive ? "inherit" : input === undefined ? "ignore" : "pipe",
            "pipe",
            keepsErrors ? "pipe" : "inherit",
          ],
          ...groupOptions(interactive),
        })
      );
      if (child instanceof Error) {
        return reject(failure(notStarted(child, options)));
      }
      const kill = () => {
        child.stdout?.destroy();
        child.stderr?.destroy();
        if (interactive || !killGroup(child.pid)) child.kill("SIGKILL");
      };
      ended.addEventListener("abort", kill, { once: true });
      // A program that does not read its input to the end may close it.
      child.stdin?.on("error", () => {}).end(input);
      const chunks: Uint8Array[] = [];
      let size = 0;
      child.stdout?.on("data", (chunk: Uint8Array) => {
        size += chunk.length;
        if (size <= maxOutput) chunks.push(chunk);
        else {
          reject(failure(`printed more than ${maxOutput} bytes`));
          kill();
        }
      });
      let errors = Buffer.alloc(0);
      child.stderr?.on("data", (chunk: Uint8Array) => {
        errors = Buffer.concat([errors, chunk]).subarray(-KEPT_BYTES);
      });
      child.on("error", (error) => {
        reject(failure(notStarted(error, options)));
      });
      child.on("close", (code, killedBy) => {
        ended.removeEventListener("abort", kill);
        if (code === 0) {
          resolve(new TextDecoder().decode(Buffer.concat(chunks)));
          return;
        }
        const said = lastLines(errors.toString());
        reject(failure(
          `failed: received ${killedBy ?? `exit code ${code}`}${said}`,
        ));
      });
    });
  return deadline(run, timeout, {
    clock,
    signal,
    onTimeout: () => failure(`did not end within ${timeout} ms`),
  });
}

/**
 * Options of a program's process group. It has one of its own, to be killed with
 * its children; a program that interacts with the user must stay attached to the
 * terminal. Windows has no groups: a detached program would open a window there.
 */
export function groupOptions(
  interactive: boolean,
  platform: string = process.platform,
): { readonly detached: boolean; readonly windowsHide: boolean } {
  return {
    detached: !interactive && platform !== "win32",
    windowsHide: !interactive,
  };
}

/** Child process, or the error of a start that fails at once. */
function started<T>(start: () => T): T | Error {
  try {
    return start();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Why a program did not start; messages of runtimes may quote its arguments. */
export function notStarted(
  error: Error & { readonly code?: string },
  { installHint, cwd }: Pick<ProgramOptions, "installHint" | "cwd">,
  platform: string = process.platform,
): string {
  if (error.name === "NotCapable") {
    return `needs the permissions --allow-run with its name and --allow-env, which coracle manifests prints if the option "programs" of the operator has it: received ${error.name}`;
  }
  const folder = cwd === undefined ? "" : ", or its folder does not exist";
  const hint = installHint ? ` (${installHint})` : "";
  const script = platform === "win32"
    ? ", or is a script (.cmd, .bat), which runs in a shell only"
    : "";
  const why = error.code === "ENOENT"
    ? `is not installed${folder}${script}${hint}`
    : `cannot be executed${error.code === "EINVAL" ? script : ""}`;
  return `${why}: received ${error.code ?? error.name}`;
}

/** Maximum length of what an error quotes of the standard error, in characters. */
const QUOTED_LENGTH = 1_000;

/** End of the standard error on one line, for an error; empty if none exists. */
function lastLines(text: string): string {
  const line = escaped(text.trim().replaceAll(/\s+/g, " "));
  if (line === "") return "";
  const isLong = line.length > QUOTED_LENGTH;
  return `: ${isLong ? `…${line.slice(1 - QUOTED_LENGTH)}` : line}`;
}

/** Kills a process group; false if none exists. */
function killGroup(leader: number | undefined): boolean {
  if (leader === undefined) return false;
  try {
    return process.kill(-leader, "SIGKILL");
  } catch {
    // It has ended already, or the system has no groups.
    return false;
  }
}
