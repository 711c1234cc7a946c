import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { currentRuntime } from "./runtime.ts";

/** A server in a process of its own. */
export interface ChildServer<T> {
  /** The line of JSON that it has written when it was ready. */
  readonly ready: T;
  /** Ends its input, on which it ends. */
  stop(): Promise<void>;
}

/** Starts a file of this folder on this runtime, until it is ready. */
export async function startChildServer<T>(
  name: string,
  ...args: readonly (string | number)[]
): Promise<ChildServer<T>> {
  const { program, flags } = currentRuntime();
  const file = fileURLToPath(new URL(name, import.meta.url));
  const child = spawn(
    program,
    [...flags, file, ...args.map(String)],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const [line] = await once(createInterface(child.stdout), "line");
  return {
    ready: JSON.parse(line) as T,
    async stop() {
      const exit = once(child, "exit");
      child.stdin.end();
      await exit;
    },
  };
}
