import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { childEnvironment } from "./child_process.ts";
import type { Http2Counters, Http2Peer } from "./http2_peer.ts";
import type { PeerCounters, TlsPeer } from "./tls_peer.ts";

/** Running {@linkcode TlsPeer}. */
export interface TlsServer extends TlsPeer {
  /** URL of the HTTPS server. */
  readonly url: string;
  /** Reads the counters. */
  counters(): Promise<PeerCounters>;
  stop(): Promise<void>;
}

/** Running {@linkcode Http2Peer}. */
export interface Http2Server extends Http2Peer {
  /** URL of the HTTPS server. */
  readonly url: string;
  /** Runs a command, if one is given, and reads the counters. */
  counters(command?: string): Promise<Http2Counters>;
  stop(): Promise<void>;
}

/** Starts the servers of `tls_peer.ts` in a process of their own, on Node. */
export async function startTlsServer(): Promise<TlsServer> {
  const { peer, control, stop } = await start<TlsPeer>("./tls_peer.ts");
  return {
    ...peer,
    url: `https://127.0.0.1:${peer.port}`,
    counters: async () => await control("") as PeerCounters,
    stop,
  };
}

/**
 * Starts the server of `http2_peer.ts` in a process of its own, on Node.
 *
 * @param maxStreams Number of streams that it accepts on a connection.
 */
export async function startHttp2Server(
  maxStreams?: number,
): Promise<Http2Server> {
  const args = maxStreams === undefined ? [] : [String(maxStreams)];
  const { peer, control, stop } = await start<Http2Peer>(
    "./http2_peer.ts",
    args,
  );
  return {
    ...peer,
    url: `https://127.0.0.1:${peer.port}`,
    counters: async (command = "") => await control(command) as Http2Counters,
    stop,
  };
}

async function start<P extends { readonly controlPort: number }>(
  file: string,
  args: readonly string[] = [],
) {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn("node", [script, ...args], {
    env: childEnvironment(),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(child.stdout), "line");
  const peer = JSON.parse(line) as P;
  return {
    peer,
    async control(path: string): Promise<unknown> {
      const url = `http://127.0.0.1:${peer.controlPort}/${path}`;
      return await (await fetch(url)).json();
    },
    async stop() {
      const exit = once(child, "exit");
      child.stdin.end();
      await exit;
    },
  };
}
