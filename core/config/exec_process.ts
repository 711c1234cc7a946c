import { spawn } from "node:child_process";
import process from "node:process";
import { type Clock, deadline } from "../clock.ts";
import { escaped } from "../api/input.ts";
import { execInfo, type ExecPlugin } from "./exec_credentials.ts";

/** Maximum size of the output of a plugin. */
const MAX_OUTPUT_BYTES = 1 << 20;
/** Time limit of a plugin without user interaction. */
const TIMEOUT_MS = 60_000;
/** Time limit of a plugin that interacts with the user, such as for a login. */
const INTERACTIVE_TIMEOUT_MS = 600_000;

/**
 * Runs an exec plugin and returns its standard output. The plugin shares the
 * standard error of this process, so that users see its messages.
 *
 * @throws {Error} If the program is not installed, fails, prints too much or
 * exceeds its time limit. The error quotes no part of its output.
 */
export function runExecPlugin(
  plugin: ExecPlugin,
  clock: Clock,
): Promise<string> {
  const failure = (why: string) =>
    new Error(
      `Cannot use ${plugin.origin}: "${escaped(plugin.command)}" ${why}`,
    );
  const terminal = process.stdin.isTTY === true;
  if (plugin.interactiveMode === "Always" && !terminal) {
    return Promise.reject(failure("needs a terminal"));
  }
  const interactive = terminal && plugin.interactiveMode !== "Never";
  const timeout = interactive ? INTERACTIVE_TIMEOUT_MS : TIMEOUT_MS;
  const run = (expired: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      const child = started(() =>
        spawn(plugin.command, [...plugin.args], {
          env: {
            ...process.env,
            ...plugin.env,
            KUBERNETES_EXEC_INFO: execInfo(plugin, interactive),
          },
          stdio: [interactive ? "inherit" : "ignore", "pipe", "inherit"],
          // A process group of its own, to kill the program with its children; a
          // program that interacts with the user must stay attached to the terminal.
          detached: !interactive,
        })
      );
      if (child instanceof Error) {
        return reject(failure(notStarted(child, plugin)));
      }
      const kill = () => {
        child.stdout.destroy();
        if (interactive || child.pid === undefined) child.kill("SIGKILL");
        else killGroup(child.pid);
      };
      expired.addEventListener("abort", kill, { once: true });
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        if (output.length > MAX_OUTPUT_BYTES) {
          reject(failure(`printed more than ${MAX_OUTPUT_BYTES} bytes`));
          kill();
        }
      });
      child.on("error", (error) => {
        reject(failure(notStarted(error, plugin)));
      });
      child.on("close", (code, signal) => {
        if (code === 0) resolve(output);
        else {
          reject(failure(`failed: received ${signal ?? `exit code ${code}`}`));
        }
      });
    });
  return deadline(run, timeout, {
    clock,
    onTimeout: () => failure(`did not end within ${timeout} ms`),
  });
}

/** Child process, or the error of a start that fails at once. */
function started<T>(start: () => T): T | Error {
  try {
    return start();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Why a plugin did not start; messages of runtimes may quote its arguments. */
function notStarted(
  error: Error & { readonly code?: string },
  { installHint }: ExecPlugin,
): string {
  const hint = installHint &&
    ` (${escaped(installHint.replaceAll(/\s+/g, " ").slice(0, 1_000))})`;
  const why = error.code === "ENOENT"
    ? `is not installed${hint}`
    : "cannot be executed";
  return `${why}: received ${error.code ?? error.name}`;
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
