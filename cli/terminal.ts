import process from "node:process";
import type { Terminal } from "./command.ts";

/** Exit code of a program that was ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Error code of a stream that nobody reads any more. */
const BROKEN_PIPE = "EPIPE";

let interrupts: AbortSignal | undefined;

export function processTerminal(): Terminal {
  return {
    out: (text) => void process.stdout.write(text),
    say: (text) => void process.stderr.write(text),
    colors: process.stderr.isTTY === true && !process.env["NO_COLOR"],
    interrupts: () => interrupts ??= listen(),
  };
}

/** Signal whose reason is the name of what ends the program. */
function listen(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(INTERRUPTED);
      controller.abort(name);
    });
  }
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", ({ code }: Error & { readonly code?: string }) => {
      if (code === BROKEN_PIPE) controller.abort(BROKEN_PIPE);
    });
  }
  return controller.signal;
}
