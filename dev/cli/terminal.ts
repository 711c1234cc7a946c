import process from "node:process";
import type { Terminal } from "./command.ts";

/** Exit code of a program that was ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Error code of a write to a stream without a reader. */
const BROKEN_PIPE = "EPIPE";

/** Interval of checks that the parent process still runs, in milliseconds. */
const PARENT_CHECK_MS = 500;

let interrupts: AbortController | undefined;

export function processTerminal(): Terminal {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", ({ code }: Error & { readonly code?: string }) => {
      if (code !== BROKEN_PIPE) return;
      if (interrupts === undefined) process.exit(0);
      interrupts.abort(BROKEN_PIPE);
    });
  }
  return {
    out: (text) => void process.stdout.write(text),
    say: (text) => void process.stderr.write(text),
    colors: process.stderr.isTTY === true && !process.env["NO_COLOR"],
    interrupts: () => (interrupts ??= listen()).signal,
  };
}

/** Controller that aborts when a signal or the end of npx ends the program. */
function listen(): AbortController {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(INTERRUPTED);
      controller.abort(name);
    });
  }
  if (process.env["npm_command"] === "exec") {
    // npx starts a shell, which ends at a signal without passing it on.
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) controller.abort("npx has ended");
    }, PARENT_CHECK_MS).unref();
  }
  return controller;
}
