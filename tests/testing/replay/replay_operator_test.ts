import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Operator, watch } from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { readRecording } from "../../../dev/testing/replay/read_recording.ts";
import { replayOperator } from "../../../dev/testing/replay/replay_operator.ts";
import type { ReplayReport } from "../../../dev/testing/replay/replay_report.ts";
import { temporaryFolder } from "../../support/temporary_folder.ts";
import { recordTime, SECRET } from "./recorded_hour.ts";
import { Shop } from "./shop.ts";
import * as operators from "./shop_operators.ts";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { TestCluster, VirtualClock } from "@coracle/dev";

const folder = temporaryFolder();
const file = fileURLToPath(new URL("./shop_operators.ts", import.meta.url));
/** Number of objects; a few hundred as in production take ten seconds. */
const OBJECTS = Number(process.env["REPLAYED_OBJECTS"] ?? 12);
const hour = `${folder}/hour`;
await recordTime({
  ...{
    operator: operators.operator,
    shops: OBJECTS * 2 / 3,
    kiosks: OBJECTS / 3,
    minutes: 60,
  },
  record: (replica) => ({ path: `${hour}-${replica}`, last: "2h" }),
});
// Recordings of replicas may be put together.
writeFileSync(
  hour,
  Buffer.concat([readFileSync(`${hour}-a`), readFileSync(`${hour}-b`)]),
);
const recording = await readRecording(hour);

const replay = (
  name: keyof typeof operators,
  more: Partial<Parameters<typeof replayOperator>[0]> = {},
): Promise<ReplayReport> =>
  replayOperator({ file, export: name, recording, ...more });

test("replay of a recorded hour: all requests of the same operator are equal", async () => {
  const report = await replay("operator");
  assert.deepEqual(report.differences, []);
  assert.deepEqual(report.unrepeatable, {});
  assert.deepEqual(report.notes, []);
  assert.equal(report.equal, report.requests);
  assert.ok(report.runs > 4 * OBJECTS, `${report.runs} runs`);
  assert.ok(report.requests > 6 * OBJECTS, `${report.requests} requests`);
  const runs = recording.processes.flatMap(({ runs }) => runs);
  const outcomes = new Set(runs.map(({ end }) => end.outcome));
  assert.deepEqual([...outcomes].sort(), ["done", "failed"]);
  assert.equal(recording.processes.length, 2);
  assert.ok(runs.some(({ attempt }) => attempt > 0));
});

/** First difference of another operator, without what is known of its run. */
async function first(name: keyof typeof operators) {
  const { differences: [one] } = await replay(name, {
    ...{ untilFirst: true, object: "default/shop-1" },
  });
  const { what, recorded, repeated, fields } = one ?? {};
  return { what, recorded, repeated, fields };
}

const SHOP = "/api/v1/namespaces/default/configmaps/shop-1";
const SERVICE = "/api/v1/namespaces/default/services/shop-1";

test("replay of another operator: the first request with another value is named", async () => {
  assert.deepEqual(await first("otherValue"), {
    what: "request 2 of 5 has another body",
    recorded: `apply ${SHOP}`,
    repeated: `apply ${SHOP}`,
    fields: [{ path: ".data.color", recorded: "blue", repeated: "grey" }],
  });
});

test("replay of another operator: a further request is named", async () => {
  assert.deepEqual(await first("moreWrites"), {
    what: "another request is sent in place of request 4 of 5",
    recorded: "GET /api/v1/namespaces/default/pods?labelSelector=shop%3Dshop-1",
    repeated: `apply ${SHOP}-more`,
    fields: undefined,
  });
});

test("replay of another operator: a request that is missing is named", async () => {
  assert.deepEqual(await first("fewerWrites"), {
    what: "request 4 of 5 is sent in place of request 3",
    recorded: `apply ${SERVICE}`,
    repeated: "GET /api/v1/namespaces/default/pods?labelSelector=shop%3Dshop-1",
    fields: undefined,
  });
});

test("replay of another operator: another order of requests is named", async () => {
  assert.deepEqual(await first("otherOrder"), {
    what: "request 3 of 5 is sent in place of request 2",
    recorded: `apply ${SHOP}`,
    repeated: `apply ${SERVICE}`,
    fields: undefined,
  });
});

for (const name of ["random", "counter"] as const) {
  test(`replay of the same operator: a ${name} of its process is named`, async () => {
    const path = `${folder}/${name}`;
    await recordTime({
      ...{ operator: operators[name], shops: 4, kiosks: 0, minutes: 1 },
      // Runs of others have counted, too.
      record: (replica) => ({
        path: `${path}-${replica}`,
        objects: ["*/shop-3"],
      }),
    });
    const report = await replayOperator({
      ...{ file, export: name, untilFirst: true },
      recording: await readRecording(`${path}-a`),
    });
    const [{ object, what, fields = [] } = {}] = report.differences;
    assert.equal(object, "default/shop-3");
    assert.match(what ?? "", /^request \d of \d has another body$/);
    assert.deepEqual(fields.map((field) => field.path), [".data.number"]);
  });
}

test("replay of one object: only its runs are repeated", async () => {
  const report = await replay("otherValue", { object: "default/kiosk-3" });
  assert.equal(report.objects, 1);
  assert.ok(report.runs >= 2);
  assert.equal(report.differing, 0);
  await assert.rejects(
    () => replay("operator", { object: "default/none" }),
    /^RangeError: Cannot replay the runs of default\/none: the recording has none/,
  );
});

test("recording: no value of a Secret is in it, also where a run copied it", () => {
  const { processes } = recording;
  const texts = processes.flatMap(({ runs, object }) =>
    runs.flatMap((run) => [
      JSON.stringify(run.steps),
      ...Array.from(run.bodies.values(), String),
      ...run.reads.flatMap(([, answer]) =>
        typeof answer === "number" ? [String(object(answer))] : []
      ),
    ])
  );
  assert.ok(texts.some((text) => text.includes('"kind":"Secret"')));
  for (const secret of [SECRET, btoa(SECRET)]) {
    assert.ok(!texts.some((text) => text.includes(secret)));
  }
});

test("recording: Secrets in patches, annotations and numbers are hidden", async () => {
  const cluster = await TestCluster.start({
    clock: new VirtualClock(),
    kinds: [Shop],
    namespace: "default",
  });
  const { client, namespace, complete } = cluster;
  const key = { namespace, name: "odd" };
  const annotation = "kubectl.kubernetes.io/last-applied-configuration";
  await client.create(Secret, {
    metadata: { ...key, annotations: { [annotation]: "copy-of-token-one" } },
    // Some look like members of a recording, or numbers.
    stringData: { a: "status", b: "request", c: "1234567", d: "token-one" },
  });
  await client.create(Shop, {
    metadata: { namespace, name: "shop" },
    spec: { color: "blue" },
  });
  const parts: Uint8Array[] = [];
  const operator = new Operator({
    ...{ client: cluster.operatorClient, logger: cluster.logger },
    record: { sink: (part) => void parts.push(part) },
  });
  let error: unknown = new Error("The run has not ended");
  operator.register(Shop, {
    async reconcile(shop, ctx) {
      if (shop.spec.fails !== undefined) return;
      try {
        const secret = await ctx.get(Secret, "odd");
        const patch = (path: string, value: unknown) =>
          ctx.client.patch(Secret, key, [{ op: "add", path, value }], {
            type: "json",
          });
        const copy = `/metadata/annotations/${annotation.replace("/", "~1")}`;
        await patch(copy, "copy-of-token-two");
        await patch("/metadata/annotations", { [annotation]: "copy-three" });
        await patch("/data/e", btoa("token-four"));
        await patch("", { ...secret, data: { f: btoa("token-five") } })
          .catch(() => {});
        await ctx.client.list(Secret, { namespace });
        await ctx.client.patch(Shop, shop.metadata as typeof key, {
          spec: { color: "token-one", fails: 1_234_567 },
        });
        error = undefined;
      } catch (failure) {
        error = failure;
      }
    },
  }, {
    watches: [watch(Secret, { references: () => [{ name: "odd" }] })],
  });
  await complete(operator.start());
  await complete(operator.stop());
  await cluster.stop();
  assert.equal(error, undefined);
  const path = `${folder}/odd`;
  writeFileSync(path, Buffer.concat(parts));
  const { processes: [found] } = await readRecording(path);
  const run = found!.runs.find(({ secrets }) => secrets)!;
  assert.ok(run.steps.some(({ answer }) => answer?.status === 200));
  const texts = [
    JSON.stringify(run.steps),
    ...Array.from(run.bodies.values(), String),
    ...run.reads.flatMap(([, answer]) =>
      typeof answer === "number" ? [String(found!.object(answer))] : []
    ),
  ];
  for (const text of texts) {
    JSON.parse(text);
    assert.doesNotMatch(text, /token-\w|copy-|1234567/);
    for (const word of ["four", "five"]) {
      assert.ok(!text.includes(btoa(`token-${word}`)));
    }
  }
  assert.ok(texts.length > 12);
});

test("recording: a copy of a Secret's value that a later run reads is hidden", async () => {
  const cluster = await TestCluster.start({
    clock: new VirtualClock(),
    kinds: [Shop],
    namespace: "default",
  });
  const { client, namespace, complete } = cluster;
  const key = { namespace, name: "odd" };
  await client.create(Secret, { metadata: key, stringData: { key: SECRET } });
  // It is read before the Secret.
  await client.create(ConfigMap, {
    metadata: { namespace, name: "copy" },
    data: { copy: SECRET },
  });
  await client.create(Shop, {
    metadata: { namespace, name: "shop" },
    spec: { color: "blue" },
  });
  const parts: Uint8Array[] = [];
  const operator = new Operator({
    ...{ client: cluster.operatorClient, logger: cluster.logger },
    record: { sink: (part) => void parts.push(part) },
  });
  operator.register(Shop, {
    async reconcile(shop, ctx) {
      // The run after the copy reads no Secret.
      if (shop.spec.color !== "blue") return;
      await ctx.client.find(ConfigMap, { namespace, name: "copy" });
      await ctx.get(ConfigMap, "copy");
      const { data = {} } = await ctx.get(Secret, "odd") ?? {};
      await ctx.client.patch(Shop, shop.metadata as typeof key, {
        spec: { color: atob(data["key"] ?? "") },
      });
    },
  }, { owns: [ConfigMap, Secret] });
  await complete(operator.start());
  await complete(operator.stop());
  await cluster.stop();
  const path = `${folder}/later`;
  writeFileSync(path, Buffer.concat(parts));
  const { processes: [found] } = await readRecording(path);
  const { runs = [] } = found ?? {};
  assert.ok(runs.length >= 2);
  const texts = runs.flatMap((run) => [
    JSON.stringify(run),
    ...Array.from(run.bodies.values(), String),
    ...[run.primary, ...run.reads.map(([, answer]) => answer)].flatMap((one) =>
      typeof one === "number" ? [String(found?.object(one))] : []
    ),
  ]);
  assert.ok(texts.some((text) => text.includes('"color":"digest-')));
  assert.ok(texts.some((text) => text.includes('"copy":"digest-')));
  assert.deepEqual(texts.filter((text) => text.includes(SECRET)), []);
});

test("recording: only its owner may read the file", () => {
  assert.equal(statSync(`${hour}-a`).mode & 0o777, 0o600);
});
