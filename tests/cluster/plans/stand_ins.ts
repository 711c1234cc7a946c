/**
 * What a control plane alone lacks: a node that runs Pods, and a server outside.
 *
 * @module
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Operator, patchStatus } from "@coracle/operator";
import { type Client, silentLogger } from "@coracle/operator/client";
import { Pod } from "@coracle/operator/kinds";

/** Says of each Pod that it runs and is ready, as a node does. */
export function nodeStandIn(client: Client): Operator {
  const node = new Operator({ client, logger: silentLogger });
  node.register(Pod, {
    reconcile({ status }) {
      if (status?.phase === "Running") return;
      const ready = { type: "Ready", status: "True" } as const;
      return patchStatus({ phase: "Running", conditions: [ready] });
    },
  }, { name: "node-stand-in" });
  return node;
}

/**
 * Starts a server that answers each request in the same way, but those below
 * `/closed`, of which it breaks the connection.
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
