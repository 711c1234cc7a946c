import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { currentRuntime } from "./runtime.ts";

/** Options of a {@linkcode PodServer}. */
export interface PodServerOptions {
  /** Number of Pods. */
  readonly objects: number;
  /** Number of changes to send on request. */
  readonly events: number;
  readonly scheme: "http" | "https";
}

/** Server of Pods in a process of its own. */
export interface PodServer {
  readonly url: string;
  /** Certificate of its authority, in PEM. */
  readonly authority: string;
  /** Sends the changes to every open watch. */
  send(): void;
  stop(): Promise<void>;
}

/** Starts a {@linkcode PodServer}. */
export async function startPodServer(
  options: PodServerOptions,
): Promise<PodServer> {
  const { program, flags } = currentRuntime();
  const { objects, events, scheme } = options;
  const file = new URL("./pod_server_process.ts", import.meta.url);
  const child = spawn(
    program,
    [...flags, fileURLToPath(file), String(objects), String(events), scheme],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const [line] = await once(createInterface(child.stdout), "line");
  const { url, authority } = JSON.parse(line) as PodServer;
  // A separate socket, so that the subject's connection pool is unaffected.
  const send = async () => {
    const { request } = await import(`node:${options.scheme}`);
    request(`${url}/send`, { method: "POST", ca: authority, agent: false })
      .end();
  };
  return {
    url,
    authority,
    send: () => void send(),
    async stop() {
      const exit = once(child, "exit");
      child.stdin.end();
      await exit;
    },
  };
}
