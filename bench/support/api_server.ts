import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { currentRuntime } from "./runtime.ts";

/** Embedded API server in a process of its own. */
export interface ServerProcess {
  readonly url: URL;
  readonly token: string;
  /** Certificate of its authority, in PEM. */
  readonly authority: string;
  /** Stops it; returns processor time in microseconds and peak RSS in MiB. */
  stop(): Promise<{ readonly cpu: number; readonly peak: number }>;
}

/** Starts a {@linkcode ServerProcess}. */
export async function startServerProcess(
  scheme: "http" | "https",
): Promise<ServerProcess> {
  const { program, flags } = currentRuntime();
  const file = new URL("./api_server_process.ts", import.meta.url);
  const child = spawn(program, [...flags, fileURLToPath(file), scheme], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout);
  const next = async () => JSON.parse((await once(lines, "line"))[0]);
  const { url, token, authority } = await next();
  return {
    url: new URL(url),
    token,
    authority,
    async stop() {
      const exit = once(child, "exit");
      const last = next();
      child.stdin.end();
      const usage = await last;
      await exit;
      return usage;
    },
  };
}
