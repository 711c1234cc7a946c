import type { Transport } from "@coracle/operator/client";
import { ApiServer } from "../dev/apiserver/server.ts";
import { Client } from "../core/client/client.ts";
import { installCrd } from "../core/crd/install_crd.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { WebApp, webAppWorkflow } from "./support/web_app.ts";
import { measureRounds } from "./support/run_rounds.ts";
import { peakRss } from "./support/sampling.ts";

const PRIMARIES = 50;
const NODES = 10;

/** Client of a server that counts its write requests. */
function countingClient(server: ApiServer): {
  readonly client: Client;
  readonly writes: () => number;
} {
  const { transport } = server;
  let writes = 0;
  const counting: Transport = {
    send(request) {
      if (request.method !== "GET") writes++;
      return transport.send(request);
    },
    close: () => transport.close(),
  };
  return {
    client: new Client({ transport: counting }),
    writes: () => writes,
  };
}

async function coracle(): Promise<readonly Measure[]> {
  const server = await ApiServer.start({ port: false });
  const { client, writes } = countingClient(server);
  await installCrd(client, WebApp);
  let runs = 0;
  let done = () => {};
  let goal = Infinity;
  const operator = new Operator({ client, logger: silentLogger });
  const controller = operator.register(WebApp, {
    reconcile(_app, { workflow }) {
      verify(workflow?.done === true, "the workflow must be done");
      if (++runs === goal) done();
    },
  }, { workflow: webAppWorkflow() });
  await operator.start();
  const keys = Array.from({ length: PRIMARIES }, (_, i) => `default/app-${i}`);
  for (let i = 0; i < PRIMARIES; i++) {
    await client.create(WebApp, {
      metadata: { name: `app-${i}`, namespace: "default" },
      spec: { image: "registry.example.com/app" },
    });
  }
  /** Until all writes have come back, and nothing runs because of them. */
  for (let before = -1; before < runs || runs < PRIMARIES;) {
    before = runs;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  verify(
    writes() >= PRIMARIES * NODES,
    `every node must have been written: ${writes()}`,
  );
  const written = writes();
  const round = async () => {
    goal = runs + PRIMARIES;
    const ended = new Promise<void>((resolve) => done = resolve);
    for (const key of keys) controller.trigger(key);
    await ended;
    await new Promise(setImmediate);
  };
  const measures = await measureRounds(round, PRIMARIES);
  verify(writes() === written, "nothing may be written that is unchanged");
  await operator.stop();
  await server.stop();
  return [...measures, peakRss()];
}

export const bench: Bench = {
  name: "workflow",
  what: `a run with ${NODES} unchanged dependents in a graph`,
  rounds: 3,
  subjects: [{ name: "coracle", run: coracle }],
};
