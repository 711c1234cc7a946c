/**
 * What a control plane alone lacks: a node that runs Pods, and a server outside.
 *
 * @module
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Operator, patchStatus } from "@coracle/operator";
import { type Client, silentLogger, timestamp } from "@coracle/operator/client";
import { Pod } from "@coracle/operator/kinds";

/**
 * Runs each Pod, makes it ready, and ends one that is to be deleted, as a scheduler
 * and a node do.
 */
export function nodeStandIn(client: Client): Operator {
  const node = new Operator({ client, logger: silentLogger });
  node.register(Pod, {
    async reconcile({ metadata, spec, status }, ctx) {
      if (ctx.deleted) return;
      if (metadata.deletionTimestamp !== undefined) {
        const { uid } = metadata;
        await client.delete(Pod, metadata, {
          gracePeriodSeconds: 0,
          preconditions: { uid },
        });
        return;
      }
      if (spec && !spec.nodeName) {
        await client.createSubresource(Pod, metadata, "binding", {
          target: { kind: "Node", name: "stand-in" },
        });
      }
      if (!spec || status?.phase === "Running") return;
      const now = timestamp(ctx.clock.wallTime());
      const types = ["Initialized", "ContainersReady", "Ready"];
      return patchStatus({
        phase: "Running",
        startTime: now,
        podIP: "10.9.0.1",
        conditions: types.map((type) => ({
          type,
          status: "True" as const,
          lastTransitionTime: now,
        })),
        containerStatuses: spec.containers.map(({ name, image = "" }) => ({
          name,
          image,
          imageID: image,
          ready: true,
          started: true,
          restartCount: 0,
          state: { running: { startedAt: now } },
        })),
      });
    },
  }, { name: "node-stand-in", allEvents: true });
  return node;
}

/**
 * Starts a server that answers each request in the same way, but those below
 * `/closed`, where it breaks the connection.
 */
export async function startOutside(): Promise<
  { readonly url: string; close(): void }
> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/closed")) {
      request.destroy();
      return;
    }
    request.resume();
    response.setHeader("etag", '"1"');
    response.end(`${request.url}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
