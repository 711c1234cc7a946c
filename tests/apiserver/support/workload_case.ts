import type { ApiServerOptions } from "@coracle/dev/apiserver";
import type { Client } from "@coracle/operator/client";
import { ApiServer } from "../../../dev/apiserver/server.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";

/** Fixture of a test of the server's controllers. */
export interface WorkloadFixture {
  readonly server: ApiServer;
  readonly client: Client;
  readonly clock: VirtualClock;
}

/** Body of a test with a server without a port, on a virtual clock. */
export function workloadTest(
  options: ApiServerOptions,
  body: (fixture: WorkloadFixture) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const clock = new VirtualClock();
    const server = await ApiServer.start({
      port: false,
      clock,
      seed: 1,
      ...options,
    });
    try {
      await body({ server, client: server.client, clock });
    } finally {
      await server.stop();
    }
  };
}
