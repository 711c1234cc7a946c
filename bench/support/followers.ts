import { Buffer } from "node:buffer";
import type { ReconnectOptions } from "@coracle/operator/client";
import { untyped } from "../../core/api/kind.ts";
import { Informer } from "../../core/cache/informer/informer.ts";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import type { PodServer } from "./pod_server.ts";
import { loadRival } from "./rival.ts";

/** Cache of Pods that follows a server. */
export interface Follower {
  /** Number of cached Pods. */
  readonly size: number;
  /** Number of changes delivered since the sync. */
  readonly changes: number;
  /** Newest resourceVersion of a cached Pod. */
  version(key: { readonly namespace: string; readonly name: string }):
    | string
    | undefined;
  /** Stops the watch. */
  stop(): Promise<void>;
}

/** Starts a follower; resolves when it has synced. */
export type StartFollower = (server: PodServer) => Promise<Follower>;

const Pod = untyped({
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  scope: "Namespaced",
});

/** Coracle's informer, with a handler that counts. */
export function coracle(reconnect: ReconnectOptions = {}): StartFollower {
  return async (server) => {
    const transport = await openHttpTransport({
      server: server.url,
      certificateAuthority: server.authority,
    });
    const informer = new Informer(new Client({ transport }), Pod, {
      reconnect,
      prune: ["metadata.managedFields"],
    });
    let changes = 0;
    informer.addHandler((event) => {
      if (event.type === "updated") changes++;
    });
    await informer.start().synced;
    return {
      get size() {
        return informer.size;
      },
      get changes() {
        return changes;
      },
      version: (key) => informer.get(key)?.metadata.resourceVersion,
      stop: () => informer.stop(),
    };
  };
}

/** Part of client-node that is used. */
interface ClientNode {
  readonly KubeConfig: new () => {
    loadFromOptions(options: unknown): void;
    makeApiClient(api: unknown): {
      listPodForAllNamespaces(): Promise<unknown>;
    };
  };
  readonly CoreV1Api: unknown;
  makeInformer(config: unknown, path: string, list: unknown): {
    on(event: string, callback: (object: unknown) => void): void;
    start(): Promise<void>;
    stop(): Promise<void>;
    list(): readonly unknown[];
    get(name: string, namespace: string): {
      metadata: { resourceVersion: string };
    } | undefined;
  };
}

/** client-node's informer, with a handler that counts. */
export const clientNode: StartFollower = async (server) => {
  const rival = await loadRival<ClientNode>("@kubernetes/client-node");
  const config = new rival.KubeConfig();
  const trust = server.url.startsWith("https:")
    ? { caData: Buffer.from(server.authority).toString("base64") }
    // It uses plain HTTP only if TLS verification is switched off.
    : { skipTLSVerify: true };
  config.loadFromOptions({
    clusters: [{ name: "bench", server: server.url, ...trust }],
    users: [{ name: "bench" }],
    contexts: [{ name: "bench", cluster: "bench", user: "bench" }],
    currentContext: "bench",
  });
  const api = config.makeApiClient(rival.CoreV1Api);
  const informer = rival.makeInformer(
    config,
    "/api/v1/pods",
    () => api.listPodForAllNamespaces(),
  );
  let changes = 0;
  informer.on("update", () => changes++);
  let stopped = false;
  informer.on("error", (error) => {
    if (!stopped) throw error;
  });
  await informer.start();
  return {
    get size() {
      return informer.list().length;
    },
    get changes() {
      return changes;
    },
    version: ({ name, namespace }) =>
      informer.get(name, namespace)?.metadata.resourceVersion,
    stop() {
      stopped = true;
      return informer.stop();
    },
  };
};
