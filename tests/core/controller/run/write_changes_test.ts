import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "@coracle/operator/client";
import {
  ConfigMap,
  type KubernetesObject,
  Secret,
} from "@coracle/operator/kinds";
import {
  changedFields,
  writeChanges,
} from "../../../../core/controller/run/write_changes.ts";

/** Changes between two states of an object. */
function changes(kind: Kind, before: object, after: object): readonly string[] {
  const object = (fields: object) =>
    ({ metadata: { name: "a" }, ...fields }) as unknown as KubernetesObject;
  return writeChanges(kind, object(before), object(after));
}

test("writeChanges lists added, changed and removed fields as JSON", () => {
  assert.deepEqual(
    changes(
      ConfigMap,
      { data: { "a.b/c": "1", old: "x" }, list: [1, 2] },
      { data: { "a.b/c": "2", new: "y" }, list: [1, 3] },
    ),
    [
      'data.old: - "x"',
      'data.a.b/c: "1" → "2"',
      'data.new: + "y"',
      "list.1: 2 → 3",
    ],
  );
});

test("writeChanges leaves out what every write changes", () => {
  const state = (resourceVersion: string) => ({
    metadata: {
      name: "a",
      resourceVersion,
      generation: Number(resourceVersion),
      managedFields: [{ manager: resourceVersion }],
    },
  });
  assert.deepEqual(changes(ConfigMap, state("1"), state("2")), []);
});

test("writeChanges and changedFields read no field that a cache has pruned", () => {
  const metadata = Object.defineProperty({ name: "a" }, "managedFields", {
    get() {
      throw new Error("The cache does not store it");
    },
  });
  const before = { metadata, data: { a: "1" } } as KubernetesObject;
  const after = { metadata, data: { a: "2" } } as KubernetesObject;
  assert.deepEqual(writeChanges(ConfigMap, before, after), [
    'data.a: "1" → "2"',
  ]);
  assert.deepEqual(changedFields(before, after), ["data.a"]);
});

test("writeChanges hides the values of Secrets", () => {
  const shown = JSON.stringify([
    ...changes(Secret, { data: { a: "czE=" } }, { data: { a: "czI=" } }),
    ...changes(Secret, {}, { data: { a: "czE=" }, stringData: { b: "s3" } }),
    ...changes(Secret, { data: { a: "czE=" } }, {}),
  ]);
  assert.doesNotMatch(shown, /cz|s3/);
  assert.match(shown, /data\.a/);
});

test("writeChanges cuts long values and lists at most twenty fields", () => {
  const data = Object.fromEntries(
    Array.from({ length: 30 }, (_, i) => [`k${i}`, "x".repeat(1_000)]),
  );
  const found = changes(ConfigMap, { data: {} }, { data });
  assert.equal(found.length, 20);
  assert.ok(JSON.stringify(found).length < 20 * 200);
});

test("writeChanges hides annotations of Secrets, where kubectl keeps the data", () => {
  const annotations = {
    "kubectl.kubernetes.io/last-applied-configuration":
      '{"data":{"a":"c2VjcmV0"}}',
  };
  const found = changes(Secret, {}, { metadata: { name: "a", annotations } });
  assert.deepEqual(found, ["metadata.annotations: + (hidden)"]);
});

test("writeChanges shows 120 characters of a value", () => {
  const shown = (length: number) =>
    changes(ConfigMap, {}, { text: "x".repeat(length) });
  assert.deepEqual(shown(118), [`text: + "${"x".repeat(118)}"`]);
  assert.deepEqual(shown(119), [`text: + "${"x".repeat(119)}…`]);
});
