/**
 * Recipes for programs that are no operators: what client and informer do
 * without a controller. `client_recipes_test.ts` runs each of them.
 *
 * @module
 */

import {
  ApiError,
  Client,
  type ClusterConfig,
  Informer,
  type Kind,
  type KubernetesObject,
  type ObjectKey,
  Quantity,
} from "@coracle/operator/client";
import { Deployment, Pod, ServiceAccount } from "@coracle/operator/kinds";
import { Buffer } from "node:buffer";
import { createServer, type Server } from "node:http";

/** The last lines of a container's log. */
export async function lastLines(
  client: Client,
  pod: ObjectKey,
  tailLines: number,
): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of client.logs(pod, { tailLines })) lines.push(line);
  return lines;
}

/** The output of a command in a container; throws if it fails. */
export async function outputOf(
  client: Client,
  pod: ObjectKey,
  command: readonly string[],
): Promise<string> {
  const program = await client.exec(pod, { command });
  const { code, stdout, stderr } = await program.output();
  if (code !== 0) {
    throw new Error(`${command[0]} ended with ${code}: ${stderr}`);
  }
  return stdout;
}

/** Writes a file in a container, which needs `sh` and `cat`. */
export async function copyIn(
  client: Client,
  pod: ObjectKey,
  path: string,
  content: Uint8Array,
): Promise<void> {
  const command = ["sh", "-c", 'cat > "$0"', path];
  const program = await client.exec(pod, { command, stdin: true });
  await program.write(content);
  await program.end();
  const { code, stderr } = await program.output();
  if (code !== 0) throw new Error(`Cannot write ${path}: ${stderr}`);
}

/** Reads a file of a container, which needs `cat`. */
export async function copyOut(
  client: Client,
  pod: ObjectKey,
  path: string,
): Promise<Uint8Array> {
  const command = ["cat", path];
  const program = await client.exec(pod, { command, stderr: false });
  const chunks: Uint8Array[] = [];
  for await (const chunk of program.stdout) chunks.push(chunk);
  const code = await program.exit;
  if (code !== 0) {
    throw new Error(`Cannot read ${path}: cat ended with ${code}`);
  }
  return Buffer.concat(chunks);
}

/** What one request over a forwarded port answers. */
export async function askPort(
  client: Client,
  pod: ObjectKey,
  port: number,
): Promise<string> {
  const forward = client.portForward(pod, { port });
  const listener = await forward.listen({ port: 0 });
  try {
    const response = await fetch(`http://127.0.0.1:${listener.port}/`);
    return await response.text();
  } finally {
    await listener.close();
  }
}

/** Names of the pods that change within a time. */
export async function changedPods(
  client: Client,
  namespace: string,
  milliseconds: number,
): Promise<string[]> {
  const names = new Set<string>();
  const signal = AbortSignal.timeout(milliseconds);
  try {
    for await (const { object } of client.watch(Pod, { namespace, signal })) {
      names.add(object.metadata.name);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return [...names];
}

/** Waits until a Deployment has rolled out; throws when the signal aborts. */
export async function rolledOut(
  client: Client,
  { namespace = "default", name }: ObjectKey,
  signal: AbortSignal,
): Promise<void> {
  const informer = new Informer(client, Deployment, {
    namespaces: [namespace],
    fieldSelector: `metadata.name=${name}`,
  });
  try {
    for await (const { object } of informer.start().events({ signal })) {
      const { metadata, spec, status } = object;
      const isCurrent = status?.observedGeneration === metadata.generation;
      const replicas = spec?.replicas ?? 1;
      if (
        isCurrent && status?.updatedReplicas === replicas &&
        status.availableReplicas === replicas
      ) return;
    }
    signal.throwIfAborted();
  } finally {
    await informer.stop();
  }
}

/** Restarts the pods of a Deployment, as `kubectl rollout restart` does. */
export async function restart(client: Client, key: ObjectKey): Promise<void> {
  const now = new Date().toISOString();
  const annotations = { "kubectl.kubernetes.io/restartedAt": now };
  await client.patch(Deployment, key, {
    spec: { template: { metadata: { annotations } } },
  });
}

/** Evicts a pod; false if a disruption budget forbids it now. */
export async function evict(client: Client, pod: ObjectKey): Promise<boolean> {
  try {
    await client.createSubresource(Pod, pod, "eviction", {
      apiVersion: "policy/v1",
      kind: "Eviction",
    });
    return true;
  } catch (error) {
    if (ApiError.is(error) && error.isTooManyRequests) return false;
    throw error;
  }
}

/** A token of a service account that expires after ten minutes. */
export async function tokenOf(
  client: Client,
  account: ObjectKey,
): Promise<string> {
  const { status } = await client.createSubresource<TokenRequest>(
    ServiceAccount,
    account,
    "token",
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { audiences: [], expirationSeconds: 600 },
    },
  );
  return status.token;
}

/** Answer to a request for a token. */
interface TokenRequest {
  readonly status: {
    readonly token: string;
    readonly expirationTimestamp: string;
  };
}

/** Client with the rights of the user whose token it gets. */
export function clientOf(cluster: ClusterConfig, token: string): Client {
  const { server, certificateAuthority } = cluster;
  return new Client({
    server,
    certificateAuthority,
    credentials: { token },
  });
}

/** Usage of the pods of a namespace, as the metrics server measures it. */
export interface PodMetrics extends KubernetesObject {
  readonly containers: readonly {
    readonly name: string;
    readonly usage: { readonly cpu: string; readonly memory: string };
  }[];
}

export const PodMetrics: Kind<PodMetrics> = {
  group: "metrics.k8s.io",
  version: "v1beta1",
  kind: "PodMetrics",
  plural: "pods",
  scope: "Namespaced",
};

/** Memory that each pod of a namespace uses, in bytes. */
export async function memoryOfPods(
  client: Client,
  namespace: string,
): Promise<Map<string, number>> {
  const { items } = await client.list(PodMetrics, { namespace });
  return new Map(items.map(({ metadata, containers }) => [
    metadata.name,
    containers.reduce(
      (sum, { usage }) => sum + Quantity.parse(usage.memory).toNumber(),
      0,
    ),
  ]));
}

/** Names of all objects of a kind, read in pages of 500. */
export async function allNames(
  client: Client,
  kind: Kind,
  namespace: string,
): Promise<string[]> {
  const names: string[] = [];
  for await (const { metadata } of client.listAll(kind, { namespace })) {
    names.push(metadata.name);
  }
  return names;
}

/**
 * Server of a page that follows the pods of a namespace: one informer for all
 * browsers, which get server-sent events.
 */
export function podEvents(informer: Informer<Pod>): Server {
  return createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const registration = informer.addHandler(({ type, key, object }) => {
      const phase = object.status?.phase;
      response.write(`data: ${JSON.stringify({ type, key, phase })}\n\n`);
    });
    request.on("close", () => registration.remove());
  });
}
