import type process from "node:process";

/**
 * Current process, from the global variable `process`, which all runtimes have.
 * Importing `node:process` would read all of its properties, and thus open the
 * standard streams of a program that only needs a variable.
 */
export const hostProcess: Pick<
  typeof process,
  "env" | "cwd" | "on" | "off" | "listenerCount" | "platform"
> = (globalThis as unknown as { readonly process: typeof process }).process;
