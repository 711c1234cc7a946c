import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { parseFieldPath } from "../../../core/json/field_path.ts";
import { mutableCopy, prunedField, Pruner } from "../../../core/json/prune.ts";
import { EventScanner } from "../../../core/json/event_scanner.ts";
import { prunedText } from "../../support/pruned_text.ts";
import { hasHeader } from "../../support/expected_header.ts";
import {
  jsonText,
  kubernetesText,
  objectText,
  spelling,
} from "../../support/json_documents.ts";

type Json = Record<string, unknown>;

const pruned = (pruner: Pruner, text: string): string =>
  prunedText(pruner, wholeRange(text));

/** Deletes a path of a parsed value: defines pruning. */
function deletePath(
  value: unknown,
  steps: ReturnType<typeof parseFieldPath>,
): void {
  const [step, ...rest] = steps;
  if (typeof value !== "object" || value === null || step === undefined) return;
  const object = value as Json;
  const named = "key" in step ? [step.key] : Object.keys(object);
  if ("key" in step && Array.isArray(value)) return;
  for (const key of named) {
    if (!Object.hasOwn(object, key)) continue;
    if (rest.length > 0) deletePath(object[key], rest);
    else if (Array.isArray(value)) value.length = 0;
    else delete object[key];
  }
}

const key = fc.constantFrom("a", "b", "c.d", "é");
const { tree } = fc.letrec<{ tree: string }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: "medium", withCrossShrink: true },
    jsonText,
    objectText(
      fc.array(fc.tuple(key.chain(spelling), tie("tree")), { maxLength: 5 }),
    ),
    fc.array(tie("tree"), { maxLength: 3 }).map((list) =>
      `[ ${list.join(" , ")} ]`
    ),
  ),
}));
const steps = fc.array(
  fc.oneof(key.map((key) => `[${JSON.stringify(key)}]`), fc.constant("[*]")),
  { minLength: 2, maxLength: 4 },
).map((parts) => parts.join(""));
/** `[*]` alone at the start would take metadata. */
const paths = fc.array(
  fc.tuple(key, steps).map(([key, steps]) =>
    `${JSON.stringify([key])}${steps}`
  ),
  { minLength: 1, maxLength: 4 },
);

test("Pruner returns the parsed object with the paths deleted", () => {
  fc.assert(
    fc.property(tree, paths, (text, paths) => {
      const expected = JSON.parse(text);
      for (const path of paths) deletePath(expected, parseFieldPath(path));
      const result = pruned(new Pruner(paths), text);
      assert.deepEqual(JSON.parse(result), expected);
    }),
    { numRuns: 700 },
  );
});

test("Pruner finds the same fields with and without a scanned header", () => {
  const scanner = new EventScanner();
  const pruners = [
    ["metadata.managedFields"],
    ["metadata.managedFields", "metadata.annotations"],
    ["metadata.annotations", "metadata.managedFields"],
  ].map((paths) => ({ paths, pruner: new Pruner(paths) }));
  const texts = kubernetesText.filter((text) => hasHeader(JSON.parse(text)));
  fc.assert(
    fc.property(texts, fc.nat(20), (text, offset) => {
      const bytes = Buffer.from(" ".repeat(offset) + text);
      const range = { bytes, start: offset, end: bytes.length };
      for (const { paths, pruner } of pruners) {
        const header = scanner.scanObject(range);
        for (const source of [header, header.copy()]) {
          const expected = JSON.parse(bytes.toString());
          for (const path of paths) {
            deletePath(expected, parseFieldPath(path));
          }
          const result = JSON.parse(prunedText(pruner, source));
          assert.deepEqual(result, expected);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("Pruner removes managedFields and a long annotation from real Deployments", () => {
  const paths = [
    "metadata.managedFields",
    'metadata.annotations["deployment.kubernetes.io/revision"]',
    "status.conditions[*].lastUpdateTime",
    "spec.template.spec.containers[*].env[*].value",
  ];
  const pruner = new Pruner(paths);
  const lines = readFileSync(
    new URL("../../../bench/data/deployments.ndjson", import.meta.url),
    "utf8",
  ).trim().split("\n");
  for (const line of lines) {
    const expected = JSON.parse(line);
    for (const path of paths) deletePath(expected, parseFieldPath(path));
    const text = pruned(pruner, line);
    assert.ok(text.length < line.length * 0.7);
    assert.deepEqual(JSON.parse(text), expected);
  }
});

test("Pruner lets only reads of pruned paths throw", () => {
  const pruner = new Pruner([
    "metadata.managedFields",
    "status.conditions[*].lastProbeTime",
  ]);
  const text = pruned(
    pruner,
    '{"metadata":{"managedFields":[],"name":"a"},"status":{"conditions":[{"type":"Ready","lastProbeTime":null}]}}',
  );
  const object = JSON.parse(text);
  pruner.guard(object);
  assert.throws(
    () => object.metadata.managedFields,
    /^Error: Cannot read "metadata.managedFields": the cache does not store it/,
  );
  const [ready] = object.status.conditions;
  assert.throws(() => ready.lastProbeTime, /conditions\[\*\]\.lastProbeTime/);
  assert.deepEqual({ ...ready }, { type: "Ready" });
  assert.equal(JSON.stringify(object), text);
  assert.deepEqual(structuredClone(object), JSON.parse(text));
  object.metadata.managedFields = [];
  assert.deepEqual(object.metadata, { name: "a", managedFields: [] });
});

test("Pruner rejects paths that the library needs and malformed paths", () => {
  for (
    const path of ["metadata", "metadata.name", "metadata[*]", "[*]", "kind"]
  ) {
    assert.throws(() => new Pruner([path]), RangeError, path);
  }
  assert.throws(() => new Pruner(["spec.list[0]"]), RangeError);
  for (
    const path of [
      "",
      ".",
      "a..b",
      "a.",
      "a[",
      "a[b]",
      "a[*",
      'a["b]',
      "a b",
      "a[-1]",
    ]
  ) {
    assert.throws(() => new Pruner([path]), SyntaxError, path);
  }
});

/** Object of a cache that prunes paths. */
function guarded<T extends object>(object: T, ...paths: string[]): T {
  new Pruner(paths).guard(object);
  return object;
}

test("prunedField returns the first pruned field", () => {
  const object = () => ({ metadata: { name: "web" }, items: [{}], status: {} });
  assert.equal(prunedField(object()), undefined);
  const managed = guarded(object(), "metadata.managedFields");
  assert.equal(prunedField(managed), undefined);
  const list = guarded(object(), "items[*].secret");
  assert.equal(prunedField(list), "items.0.secret");
  assert.equal(prunedField(list, "status"), undefined);
  const status = guarded(object(), "items", "status");
  assert.equal(prunedField(status), "items");
  assert.equal(prunedField(status, "status"), "status");
});

test("prunedField returns the first field that a copy lacks", () => {
  const spec = guarded({ replicas: 2, args: [1] }, "args");
  const cached = { spec, list: [{ a: 1 }] };
  const copy = { spec: { ...spec }, list: [] };
  const lost = (written: object, live?: object) =>
    prunedField(cached, undefined, written, live);
  assert.equal(lost(copy), "spec.args");
  assert.equal(lost(copy, { spec: { args: [] } }), "spec.args");
  assert.equal(lost(copy, { spec: {} }), undefined);
  assert.equal(lost({ spec: { args: [] } }), undefined);
  assert.equal(lost({}), undefined, "the whole part is removed");
  assert.equal(prunedField(undefined, undefined, copy, {}), undefined);
});

test("Pruner removes many parts of an object, and paths beside the metadata", () => {
  const items = Array.from({ length: 40 }, (_, index) => ({ index, a: "x" }));
  const metadata = { name: "a", managedFields: [{}], annotations: { b: "y" } };
  const object = { metadata, spec: { secret: 1, items } };
  const scanned = () =>
    new EventScanner().scanObject(wholeRange(JSON.stringify(object)));
  const many = new Pruner(["spec.items[*].a"]);
  assert.deepEqual(JSON.parse(prunedText(many, scanned())).spec.items, [
    ...items.map(({ index }) => ({ index })),
  ]);
  const beside = new Pruner(["metadata.managedFields", "spec"]);
  assert.deepEqual(JSON.parse(prunedText(beside, scanned())), {
    metadata: { name: "a", annotations: { b: "y" } },
  });
  const each = new Pruner(["metadata.managedFields", "metadata[*].b"]);
  assert.deepEqual(JSON.parse(prunedText(each, scanned())).metadata, {
    name: "a",
    annotations: {},
  });
});

test("Pruner prunes the members of a field that the library needs", () => {
  const pruner = new Pruner(["metadata.labels[*]"]);
  const text = '{"metadata":{"name":"a","labels":{"b":"c"}}}';
  assert.equal(pruned(pruner, text), '{"metadata":{"name":"a","labels":{}}}');
});

test("Pruner guards each of several fields, in a copy as well", () => {
  const pruner = new Pruner([
    "spec.a",
    "spec.b",
    'spec.c[name!="x"]',
    'spec.d[name!="x"]',
  ]);
  const [c, d] = [[{ name: "x" }], [{ name: "x", more: 1 }]];
  const object = { spec: { c, d } } as { spec: Record<string, unknown> };
  pruner.guard(object);
  for (const { spec } of [object, mutableCopy(object)]) {
    assert.throws(() => spec["a"], /Cannot read "spec.a"/);
    assert.throws(() => spec["b"], /Cannot read "spec.b"/);
    assert.deepEqual([spec["c"], spec["d"]], [c, d]);
    assert.deepEqual(Object.keys(spec), []);
  }
});
