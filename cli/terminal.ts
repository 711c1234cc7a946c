import process from "node:process";
import type { Terminal } from "./command.ts";

/** Exit code of a program that was ended by Ctrl-C. */
const INTERRUPTED = 130;

let interrupts: AbortSignal | undefined;

/** Terminal of this process. */
export function processTerminal(): Terminal {
  return {
    out: (text) => void process.stdout.write(text),
    say: (text) => void process.stderr.write(text),
    colors: process.stderr.isTTY === true && !process.env["NO_COLOR"],
    interrupts: () => interrupts ??= listen(),
  };
}

function listen(): AbortSignal {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(INTERRUPTED);
    controller.abort();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  return controller.signal;
}
