import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { currentRuntime } from "./runtime.ts";

/** What a {@linkcode PodServer} serves. */
export interface PodServerOptions {
  /** How many Pods there are. */
  readonly objects: number;
  /** How many changes it sends when told. */
  readonly events: number;
  readonly scheme: "http" | "https";
}

/** A server of Pods in a process of its own. */
export interface PodServer {
  readonly url: string;
  /** The certificate of the authority that its own comes from, in PEM. */
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
  // Over a socket of its own: the subject's pool must not know of it.
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
