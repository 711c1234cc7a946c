import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { childEnvironment } from "./child_process.ts";
import type { PeerCounters, TlsPeer } from "./tls_peer.ts";

/** Running {@linkcode TlsPeer}. */
export interface TlsServer extends TlsPeer {
  /** URL of the HTTPS server. */
  readonly url: string;
  /** Reads the counters. */
  counters(): Promise<PeerCounters>;
  stop(): Promise<void>;
}

/** Starts the servers of `tls_peer.ts` in a process of their own, on Node. */
export async function startTlsServer(): Promise<TlsServer> {
  const script = fileURLToPath(new URL("./tls_peer.ts", import.meta.url));
  const child = spawn("node", [script], {
    env: childEnvironment(),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(child.stdout), "line");
  const peer = JSON.parse(line) as TlsPeer;
  return {
    ...peer,
    url: `https://127.0.0.1:${peer.port}`,
    async counters() {
      const response = await fetch(`http://127.0.0.1:${peer.controlPort}/`);
      return await response.json() as PeerCounters;
    },
    async stop() {
      const exit = once(child, "exit");
      child.stdin.end();
      await exit;
    },
  };
}
