import { startChildServer } from "./child_server.ts";

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
  const { objects, events, scheme } = options;
  const { ready: { url, authority }, stop } = await startChildServer<PodServer>(
    "pod_server_process.ts",
    objects,
    events,
    scheme,
  );
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
    stop,
  };
}
