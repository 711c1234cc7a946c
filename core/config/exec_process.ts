import process from "node:process";
import type { Clock } from "../clock.ts";
import { escaped } from "../api/input.ts";
import { execInfo, type ExecPlugin } from "./exec_credentials.ts";
import { runProgram } from "./program.ts";

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
  const hint = plugin.installHint.replaceAll(/\s+/g, " ").slice(0, 1_000);
  return runProgram(plugin.command, {
    args: plugin.args,
    env: { ...plugin.env, KUBERNETES_EXEC_INFO: execInfo(plugin, interactive) },
    timeout: interactive ? INTERACTIVE_TIMEOUT_MS : TIMEOUT_MS,
    maxOutput: MAX_OUTPUT_BYTES,
    clock,
    interactive,
    installHint: escaped(hint),
    failure,
  });
}
