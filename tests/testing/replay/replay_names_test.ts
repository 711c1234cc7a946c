import { TestCluster, VirtualClock } from "@coracle/dev";
import { isSameShown, SecretTexts } from "@coracle/operator/internal";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readRecording } from "../../../dev/testing/replay/read_recording.ts";
import { replayOperator } from "../../../dev/testing/replay/replay_operator.ts";
import { temporaryFolder } from "../../support/temporary_folder.ts";
import { NAMES, operator } from "./named_operators.ts";
import { Shop } from "./shop.ts";

const folder = temporaryFolder();
const file = fileURLToPath(new URL("./named_operators.ts", import.meta.url));

/** Recording of an operator whose objects have the names that a Secret has. */
async function recorded(): Promise<string> {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    ...{ clock, kinds: [Shop], namespace: NAMES.namespace },
  });
  const { client, namespace, complete } = cluster;
  await client.create(Secret, {
    metadata: { namespace, name: "names" },
    stringData: NAMES,
  });
  await client.create(ConfigMap, {
    metadata: { namespace, name: NAMES.user },
    data: { base: "white" },
  });
  await client.create(Shop, {
    metadata: { namespace, name: NAMES.shop },
    spec: { color: "blue", fails: 1 },
  });
  const parts: Uint8Array[] = [];
  const recording = operator({
    ...{ client: cluster.operatorClient, clock, logger: cluster.logger },
    record: { sink: (part) => void parts.push(part) },
  });
  await complete(recording.start());
  await clock.advance("1h");
  await client.delete(Shop, { namespace, name: NAMES.shop });
  await clock.advance("1m");
  await complete(recording.stop());
  await cluster.stop();
  const path = `${folder}/names`;
  writeFileSync(path, Buffer.concat(parts));
  return path;
}

const recording = await readRecording(await recorded());

test("replay: all requests are equal where names of objects are in a Secret", async () => {
  const report = await replayOperator({ file, export: "operator", recording });
  assert.deepEqual(report.differences, []);
  assert.deepEqual(report.unrepeatable, {});
  assert.equal(report.equal, report.requests);
  assert.ok(report.runs >= 5, `${report.runs} runs`);
});

test("replay: a difference beside names that are in a Secret is named", async () => {
  const { differences: [first] } = await replayOperator({
    ...{ file, export: "otherValue", recording, untilFirst: true },
  });
  assert.deepEqual(first?.fields, [
    { path: ".data.color", recorded: "blue", repeated: "grey" },
  ]);
});

test("recording: names of objects are as they are, copies of their texts are not", () => {
  const [{ runs, object } = assert.fail()] = recording.processes;
  const texts = runs.flatMap((run) => [
    ...Array.from(run.bodies.values(), String),
    ...run.reads.flatMap(([, answer]) =>
      typeof answer === "number" ? [String(object(answer))] : []
    ),
  ]);
  const paths = runs.flatMap(({ steps }) =>
    steps.flatMap(({ request }) => request?.path ?? [])
  );
  const path = "/api/v1/namespaces/default/configmaps/postgres";
  assert.ok(paths.includes(path), paths.join("\n"));
  assert.ok(paths.some((one) => one.startsWith(`${path}-web-shop?`)));
  assert.ok(paths.some((one) => /labelSelector=.*digest-/.test(one)));
  assert.ok(texts.some((text) => text.includes('"name":"postgres"')));
  const copies = texts.filter((text) =>
    /of web-shop|"base":"postgres/.test(text)
  );
  assert.deepEqual(copies, []);
  assert.ok(texts.some((text) => /"text":"digest-\w+ of digest-/.test(text)));
});

test("secret texts: names of objects and keys stay, other values are hidden", () => {
  const secrets = new SecretTexts();
  secrets.add({ stringData: { ...NAMES, kind: "ConfigMap" } });
  const metadata = {
    ...{
      name: "postgres",
      namespace: "default",
      labels: { postgres: "default" },
    },
    ownerReferences: [{ kind: "ConfigMap", name: "web-shop" }],
  };
  const shown = (value: unknown, at?: string[]) =>
    JSON.parse(secrets.hideJson(JSON.stringify(value), at));
  const object = { kind: "ConfigMap", metadata, data: { user: "a:postgres" } };
  const hidden = {
    ...object,
    metadata: { ...metadata, labels: { postgres: "(hidden)" } },
    data: { user: "a:(hidden)" },
  };
  assert.deepEqual(shown(object), hidden);
  const list = { kind: "List", items: [object], metadata: {} };
  assert.deepEqual(shown(list), { ...list, items: [hidden] });
  const template = { template: { metadata: { name: "postgres" } } };
  assert.deepEqual(shown({ spec: template }), { spec: template });
  assert.deepEqual(shown(metadata, ["metadata"]), hidden.metadata);
  const patch = (
    value: string,
  ) => [{ op: "add", path: "/data/postgres", value }];
  assert.deepEqual(shown(patch("postgres")), patch("(hidden)"));
});

test("secret texts: one that is JSON is hidden where it is a part of JSON", () => {
  const secrets = new SecretTexts();
  const auths = { auths: { "registry.example": { auth: "dXNlcjpwYXNz" } } };
  const long = "x-long-".repeat(200);
  secrets.add({ stringData: { config: JSON.stringify(auths), long } });
  const text = JSON.stringify({
    name: "a",
    config: auths,
    cut: long.slice(0, 1024),
  });
  assert.deepEqual(JSON.parse(secrets.hideJson(text)), {
    ...{ name: "a", config: "(hidden)", cut: "(hidden)" },
  });
});

test("secret texts: a hidden one equals each that it may have been, no other", () => {
  const shown = "a(hidden)b%28hidden%29c";
  assert.equal(isSameShown(shown, "a secret b secret c"), true);
  assert.equal(isSameShown("abc", shown), true);
  for (const other of ["bc", "ab", "acb"]) {
    assert.equal(isSameShown(shown, other), false, other);
  }
  // A pattern that tries each place of each value would not end.
  const many = "(hidden)a".repeat(40);
  assert.equal(isSameShown(many, `${"a".repeat(2_000)}b`), false);
  assert.equal(isSameShown(many, "a".repeat(2_000)), true);
});
