import { spawn } from "node:child_process";
import process from "node:process";
import { type Clock, deadline } from "../clock.ts";
import { execInfo, type ExecPlugin } from "./exec_plugin.ts";

/** A credential is small; a program that prints more prints something else. */
const MOST_BYTES = 1 << 20;
/** How long a program may take, in milliseconds: alone, or with a person. */
const TIMEOUTS = { alone: 60_000, withPerson: 600_000 };

/**
 * Runs an exec plug-in and gives what it printed. What it writes to standard
 * error goes where the process's own does, for a person to see.
 *
 * @throws {Error} If the program is not there, fails, prints too much or does
 * not end in time; the error quotes nothing that it printed.
 */
export function runExecPlugin(
  plugin: ExecPlugin,
  clock: Clock,
): Promise<string> {
  const fail = (expected: string, received: string) =>
    new Error(
      `Cannot use ${plugin.origin}: "${plugin.command}" must ${expected}: received ${received}`,
    );
  const terminal = process.stdin.isTTY === true;
  if (plugin.interactiveMode === "Always" && !terminal) {
    return Promise.reject(fail("talk to a person", "no terminal"));
  }
  const interactive = terminal && plugin.interactiveMode !== "Never";
  const timeout = interactive ? TIMEOUTS.withPerson : TIMEOUTS.alone;
  const run = (late: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      const child = spawn(plugin.command, [...plugin.args], {
        env: {
          ...process.env,
          ...plugin.env,
          KUBERNETES_EXEC_INFO: execInfo(plugin, interactive),
        },
        stdio: [interactive ? "inherit" : "ignore", "pipe", "inherit"],
        // A group of its own, so that it can be ended with all that it started;
        // a program that talks to a person must stay with the terminal.
        detached: !interactive,
      });
      const kill = () => {
        child.stdout.destroy();
        if (interactive || child.pid === undefined) child.kill("SIGKILL");
        else killGroup(child.pid);
      };
      late.addEventListener("abort", kill, { once: true });
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        if (output.length > MOST_BYTES) {
          reject(fail(`print at most ${MOST_BYTES} bytes`, "more"));
          kill();
        }
      });
      child.on("error", (error: Error & { readonly code?: string }) => {
        const hint = plugin.installHint && ` (${plugin.installHint})`;
        reject(
          error.code === "ENOENT"
            ? fail(`be a program that is installed${hint}`, error.code)
            : fail("be a program that can run", error.code ?? error.name),
        );
      });
      child.on("close", (code, signal) => {
        if (code === 0) resolve(output);
        else reject(fail("end well", signal ?? `exit code ${code}`));
      });
    });
  return deadline(run, timeout, {
    clock,
    onTimeout: () => fail(`end within ${timeout} ms`, "nothing"),
  });
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
