import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { ConfigMap, Namespace } from "@coracle/operator/kinds";
import { UsageError } from "../../dev/cli/command.ts";
import { applyObjects, objectsOf } from "../../dev/cli/dev_objects.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

/** Text of a ConfigMap with this metadata. */
const configMap = (metadata: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { ${metadata} }\n`;

test("objectsOf reads the YAML files of a folder in the order of their names", async () => {
  const folder = temporaryFolder();
  // Not in the order of their creation.
  for (const name of ["6", "3", "5", "4", "7", "2"]) {
    writeText(folder, `${name}.yml`, configMap(`name: x${name}`));
  }
  writeText(
    folder,
    "10.yaml",
    `${configMap("name: a")}---\n${configMap("name: b")}`,
  );
  writeText(folder, "0.json", "{}");
  writeText(folder, "0.yaml.bak", "oops: [");
  writeText(folder, "deep/0.yaml", configMap("name: deep"));
  const namesOf = async (path: string) =>
    (await objectsOf(path)).map(({ metadata }) => metadata.name);
  assert.deepEqual(await namesOf(folder), [
    "a",
    "b",
    ...["2", "3", "4", "5", "6", "7"].map((name) => `x${name}`),
  ]);
  assert.deepEqual(await namesOf(join(folder, "2.yml")), ["x2"]);
});

test("objectsOf reads the values that kubectl reads, and leaves out nulls", async () => {
  const file = writeText(
    temporaryFolder(),
    "list.yaml",
    `kind: List
items:
  - null
  - apiVersion: v1
    kind: Pod
    metadata: { name: a }
    spec: { mode: 0644, on: yes, at: 2026-01-01 }
---
`,
  );
  assert.deepEqual(JSON.parse(JSON.stringify(await objectsOf(file))), [{
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a" },
    spec: { mode: 420, on: true, at: "2026-01-01" },
  }]);
});

test("objectsOf refuses what cannot be applied, and names the file", async () => {
  const folder = temporaryFolder();
  for (
    const [name, text, message] of [
      [
        "kind",
        "apiVersion: v1\nmetadata: { name: a }\n",
        /must have apiVersion/,
      ],
      ["version", "kind: Pod\nmetadata: { name: a }\n", /must have apiVersion/],
      ["name", configMap(""), /must have apiVersion, kind and metadata\.name$/],
      ["empty", "", /it has no objects$/],
    ] as const
  ) {
    const file = writeText(folder, `${name}.yaml`, text);
    await assert.rejects(objectsOf(file), (error: Error) => {
      assert.ok(error instanceof UsageError);
      assert.ok(error.message.startsWith(`Cannot apply ${file}: `));
      assert.match(error.message, message);
      return true;
    });
  }
  await assert.rejects(objectsOf(temporaryFolder()), /it has no objects$/);
  await assert.rejects(objectsOf(join(folder, "none")), UsageError);
});

test("applyObjects applies objects to their namespace, and says each", async () => {
  const server = await ApiServer.start({ port: 0 });
  const { client } = server;
  const folder = temporaryFolder();
  const kubeconfig = writeText(folder, "kubeconfig", server.kubeconfig);
  const file = writeText(
    folder,
    "all.yaml",
    [
      "apiVersion: v1\nkind: Namespace\nmetadata: { name: team }\n",
      configMap("name: a"),
      configMap("name: b, namespace: team"),
      configMap("name: c, namespace: missing"),
      configMap("name: d"),
    ].join("---\n"),
  );
  let said = "";
  const terminal = {
    out() {},
    say: (text: string) => void (said += text),
    colors: false,
    interrupts: () => new AbortController().signal,
  };
  try {
    await applyObjects(file, { kubeconfig, terminal });
    await client.get(Namespace, { name: "team" });
    await client.get(ConfigMap, { namespace: "default", name: "a" });
    await client.get(ConfigMap, { namespace: "team", name: "b" });
    assert.equal(
      await client.find(ConfigMap, { namespace: "default", name: "d" }),
      undefined,
      "what follows a failure is not applied",
    );
  } finally {
    await server.stop();
  }
  const lines = said.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 3), [
    `Applied Namespace team of ${file}.`,
    `Applied ConfigMap a of ${file}.`,
    `Applied ConfigMap b of ${file}.`,
  ]);
  assert.equal(lines.length, 4);
  assert.match(
    lines[3] ?? "",
    /^Cannot apply .*all\.yaml: .*"missing" not found/,
  );
});
