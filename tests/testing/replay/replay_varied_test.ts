import { TestCluster, VirtualClock } from "@coracle/dev";
import { ConfigMap } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  readRecording,
  type Recording,
} from "../../../dev/testing/replay/read_recording.ts";
import { replayOperator } from "../../../dev/testing/replay/replay_operator.ts";
import { temporaryFolder } from "../../support/temporary_folder.ts";
import { Kiosk, Shop } from "./shop.ts";
import { operator, rates } from "./varied_operators.ts";

const folder = temporaryFolder();
const file = fileURLToPath(new URL("./varied_operators.ts", import.meta.url));
const SHOPS = 4;

/** Parts of the recording of half an hour with failures and conflicts. */
async function recorded(): Promise<readonly Uint8Array[]> {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    ...{ clock, kinds: [Shop, Kiosk], namespace: "default" },
    server: { seed: 11 },
  });
  const { client, namespace, complete, faults } = cluster;
  for (let i = 0; i < SHOPS; i++) {
    await client.create(Shop, {
      metadata: { namespace, name: `shop-${i}` },
      spec: { color: "blue" },
    });
  }
  for (const name of ["kiosk-0", "kiosk-1"]) {
    const metadata = { namespace, name };
    await client.create(Kiosk, { metadata, spec: { goods: "tea" } });
  }
  const verb = ["create", "update", "patch", "delete"];
  for (
    const effect of [
      { status: 500 },
      { conflict: true },
      { reset: "request" },
      { reset: "answer" },
    ] as const
  ) faults.add({ effect, verb, namespace, probability: 0.03 });
  const parts: Uint8Array[] = [];
  const recording = operator({
    ...{ client: cluster.operatorClient, clock, logger: cluster.logger },
    record: { sink: (part) => void parts.push(part) },
  });
  await complete(recording.start());
  for (let minute = 0; minute < 30; minute++) {
    rates.set(`default/shop-${minute % SHOPS}`, [{ rate: minute }]);
    const key = { namespace, name: `shop-${minute % SHOPS}` };
    const color = minute % 6 === 4 ? "slow" : `color-${minute}`;
    await client.patch(Shop, key, { spec: { color } }).catch(() => {});
    if (minute % 9 === 7) await client.delete(Shop, key).catch(() => {});
    if (minute === 12) {
      await client.delete(ConfigMap, { namespace, name: "counts" })
        .catch(() => {});
    }
    await clock.advance("1m");
  }
  await complete(recording.stop());
  await cluster.stop();
  return parts;
}

const parts = await recorded();

async function read(some: readonly Uint8Array[]): Promise<Recording> {
  const path = `${folder}/varied`;
  writeFileSync(path, Buffer.concat(some));
  return await readRecording(path);
}

const recording = await read(parts);

test("replay: an operator of many features sends all requests again", async () => {
  const runs = recording.processes.flatMap(({ runs }) => runs);
  const outcomes = new Set(runs.map(({ end }) => end.outcome));
  assert.deepEqual([...outcomes].sort(), ["aborted", "done", "failed"]);
  const causes = new Set(runs.map(({ cause }) => cause.type));
  for (const cause of ["modified", "source", "retry", "reschedule"] as const) {
    assert.ok(causes.has(cause), `${[...causes]}`);
  }
  const steps = runs.flatMap(({ steps }) => steps);
  assert.ok(steps.some(({ answer }) => answer?.status === 409));
  const report = await replayOperator({ file, export: "operator", recording });
  assert.deepEqual(report.differences, []);
  assert.deepEqual(report.unrepeatable, {});
  assert.equal(report.equal, report.requests);
  assert.ok(report.requests > 300, `${report.requests} requests`);
});

test("replay: of a recording whose beginning is lost, whole runs are equal", async () => {
  const rest = await read(parts.slice(Math.floor(parts.length / 2)));
  const report = await replayOperator({
    ...{ file, export: "operator", recording: rest },
  });
  assert.deepEqual(report.differences, []);
  assert.deepEqual(report.unrepeatable, {});
  assert.equal(report.equal, report.requests);
  assert.ok(report.runs > 20, `${report.runs} runs`);
});

test("replay: of a changed operator, the first object made otherwise is named", async () => {
  const { differences: [first] } = await replayOperator({
    ...{ file, export: "otherGoods", recording, untilFirst: true },
  });
  assert.equal(first?.recorded, "POST /api/v1/namespaces/default/configmaps");
  assert.deepEqual(first?.fields, [
    { path: ".data.goods", recorded: "tea", repeated: "coffee" },
  ]);
});
