import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fromFiles, fromYaml } from "@coracle/operator/workflows";
import { manifestObjects } from "../../../workflows/apply/manifests.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const named = (name: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\n`;

test("Manifests are read as kubectl does: all documents, lists, YAML 1.1", async () => {
  const objects = await fromYaml(`# a comment
---
${named("a")}
data: { mode: 0644, on: yes, off: "no", time: 2026-01-02, ratio: 12:30:45 }
---
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: { name: b, creationTimestamp: null }
  status: { loadBalancer: {} }
---
base: &base { labels: { app: web } }
apiVersion: v1
kind: Service
metadata: { name: c, <<: *base }
`);
  assert.deepEqual(objects.map(({ metadata: { name } }) => name), [
    "a",
    "b",
    "c",
  ]);
  assert.deepEqual({ ...objects[0]?.["data"] as object }, {
    mode: 420,
    on: true,
    off: "no",
    time: "2026-01-02",
    ratio: "12:30:45",
  });
  assert.equal("status" in objects[1]!, false);
  assert.deepEqual(objects[2]?.metadata.labels, { app: "web" });
});

for (
  const [text, error] of [
    ["a: [", /Cannot read manifests: .*received [A-Z_]+ at line 1, column 5$/],
    [
      `${named("a")}kind: Secret`,
      /received DUPLICATE_KEY at line 4, column 1$/,
    ],
    [
      "just text",
      /manifests, object 1: it must be an object: received "just text"$/,
    ],
    ["kind: Secret", /object 1: it must have "apiVersion": received nothing$/],
    [
      "apiVersion: v1\nkind: Secret\nmetadata: {}",
      /object 1, a Secret: it must have a metadata.name that is text: received nothing$/,
    ],
    [
      `${named("a")}---\n${named("7")}`,
      /object 2, a ConfigMap: it must have a metadata.name that is text: received a number$/,
    ],
    [
      `${named("a")}x: &x { y: [*x] }`,
      /received an alias within its anchor at line 4, column 13$/,
    ],
    [
      `${named("a")}x: *y`,
      /received an alias without its anchor, or too many$/,
    ],
    [
      `${named("a")}x: 9007199254740993`,
      /received a number that JSON or JavaScript lacks at line 4, column 4$/,
    ],
    [`${named("a")}x: [.nan, 1]`, /number that JSON .* at line 4, column 5$/],
    [
      "apiVersion: v1\nkind: Secret\nmetadata: { name: a, labels: web }",
      /object 1, a Secret: it must have a metadata.labels that is an object: received "web"$/,
    ],
    [
      "apiVersion: v1\nkind: Secret\nmetadata: { name: a, annotations: [b] }",
      /metadata.annotations that is an object: received an array$/,
    ],
    ["\n".repeat(200_001), /at most 200000 line breaks and commas/],
  ] as const
) {
  test(`Manifests are refused with their place: ${error.source.slice(0, 40)}`, async () => {
    await assert.rejects(fromYaml(text), error);
  });
}

test("A list without items is empty, and large numbers stay as they are", async () => {
  assert.deepEqual(
    await fromYaml("apiVersion: v1\nkind: List\nitems:\n"),
    [],
  );
  const [object] = await fromYaml(
    `${named("a")}x: [9007199254740991, 1e300, "9007199254740993"]`,
  );
  assert.deepEqual(object?.["x"], [
    9007199254740991,
    1e300,
    "9007199254740993",
  ]);
});

test("What is no list of objects is refused by its source", () => {
  for (const value of [undefined, {}] as never[]) {
    assert.throws(
      () => manifestObjects(value, "the objects of a set"),
      /^TypeError: Cannot read the objects of a set: they must be a list: received (?:nothing|an object)$/,
    );
  }
});

test("A list that contains itself is refused", () => {
  const list: { kind: string; items: unknown[] } = { kind: "List", items: [] };
  list.items.push(list);
  assert.throws(() => manifestObjects([list], "a set"), /nested/);
});

test("Files are read by path, folder and pattern, in the order of names", async () => {
  const folder = temporaryFolder();
  writeText(folder, "set/b.yml", named("b"));
  writeText(folder, "set/a.yaml", named("a"));
  writeText(
    folder,
    "set/sub/c.json",
    '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}',
  );
  writeText(folder, "set/README.md", "# No manifest");
  // A mounted ConfigMap: links to a folder whose name begins with dots.
  const real = writeText(folder, "set/..data/d.yaml", named("d"));
  symlinkSync(real, join(folder, "set/e.yaml"));
  const read = async (...paths: string[]) =>
    (await fromFiles(...paths.map((path) => join(folder, path))))
      .map(({ metadata: { name } }) => name);
  assert.deepEqual(await read("set"), ["a", "b", "d", "c"]);
  assert.deepEqual(await read("set/*.yaml", "set/b.yml"), ["a", "d", "b"]);
  await assert.rejects(read("set/*.none"), /none: there is no such file$/);
  await assert.rejects(
    read("absent"),
    /Cannot read .*absent: received ENOENT$/,
  );
  writeText(folder, "bad/x.yaml", "a: [");
  await assert.rejects(
    read("bad"),
    /Cannot read .*bad.x.yaml: it must be YAML/,
  );
});
