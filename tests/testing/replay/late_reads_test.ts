import { TestCluster, VirtualClock } from "@coracle/dev";
import { Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { RUNTIME } from "../../support/program.ts";
import { Shop } from "./shop.ts";

const RUNS = 100;
const BYTES = 200_000;

test("A recording holds nothing that a run reads after its end", {
  skip: RUNTIME !== "node" && "Garbage is collected on command on Node",
}, async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    ...{ clock, kinds: [Shop], namespace: "default" },
    server: { history: { changes: 10, bytes: 1 << 20 } },
  });
  const { client, namespace, complete } = cluster;
  const name = "large";
  const metadata = { namespace, name };
  await client.create(ConfigMap, { metadata, data: { n: "" } });
  await client.create(Shop, { metadata, spec: { color: "red" } });
  const operator = new Operator({
    client: cluster.operatorClient,
    clock,
    logger: cluster.logger,
    record: { sink: () => {} },
  });
  let reads = 0;
  operator.register(Shop, {
    reconcile(_shop, ctx) {
      // Nobody waits for it.
      void ctx.get(ConfigMap, name).then(() => reads++);
    },
  });
  await complete(operator.start());
  const held = () => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  let before = 0;
  for (let run = 0; run < RUNS; run++) {
    if (run === RUNS / 4) before = held();
    await client.patch(ConfigMap, metadata, {
      data: { n: String(run).padEnd(BYTES, "x") },
    });
    await client.patch(Shop, metadata, { spec: { color: `${run}` } });
    await clock.advance("1s");
  }
  const growth = held() - before;
  await complete(operator.stop());
  await cluster.stop();
  assert.ok(reads >= RUNS, `${reads} reads`);
  // The cluster in memory keeps each text once.
  const kept = 0.75 * RUNS * BYTES;
  assert.ok(growth < 1.5 * kept, `grown by ${growth} bytes`);
});
