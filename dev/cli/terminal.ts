import process from "node:process";
import type { Terminal } from "./command.ts";

/** Exit code of a program that was ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Error code of a write to a stream without a reader. */
const BROKEN_PIPE = "EPIPE";

/** Interval of checks that the parent process still runs, in milliseconds. */
const PARENT_CHECK_MS = 500;

let interrupts: AbortController | undefined;
/** Whether the errors of the streams are handled: a program may run commands. */
let isFollowed = false;

export function processTerminal(): Terminal {
  if (!isFollowed) {
    for (const stream of [process.stdout, process.stderr]) {
      stream.on("error", (error: Error & { readonly code?: string }) => {
        if (error.code !== BROKEN_PIPE) return unwritten(stream, error);
        if (interrupts === undefined) process.exit(process.exitCode ?? 0);
        interrupts.abort(BROKEN_PIPE);
      });
    }
    isFollowed = true;
  }
  return {
    out: (text) => void process.stdout.write(text),
    say: (text) => void process.stderr.write(text),
    colors: process.stderr.isTTY === true && !process.env["NO_COLOR"],
    interrupts: () => (interrupts ??= listen()).signal,
  };
}

/** Ends the process if its output is not complete, as on a full disk. */
function unwritten(stream: unknown, { message }: Error): void {
  if (stream !== process.stdout) return;
  process.stderr.write(`Cannot write the output: ${message}\n`);
  process.exit(1);
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
