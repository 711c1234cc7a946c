import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import {
  jsonPatchChanges,
  mergePatchChanges,
  replacementChanges,
} from "../../../../core/controller/run/write_match.ts";
import { applyMergePatch } from "../../../../core/patch/merge_patch.ts";
import { jsonEquals } from "../../../../core/patch/json_value.ts";
import { diffJsonPatch } from "../../../../core/patch/json_patch.ts";

const OBJECT = {
  metadata: {
    name: "web",
    uid: "1",
    resourceVersion: "7",
    labels: { app: "web" },
  },
  spec: { replicas: 2, args: ["a", "b"] },
  status: { ready: true },
};

/** Object of a cache that prunes a field. */
function without(object: object, name: string): object {
  return Object.defineProperty(object, name, {
    configurable: true,
    get() {
      throw new Error(`Cannot read "${name}": the cache does not keep it`);
    },
  });
}

test("mergePatchChanges finds no change in an equal object [J45]", () => {
  const same: readonly object[] = [
    {},
    { spec: { replicas: 2 } },
    { spec: { args: ["a", "b"] } },
    { spec: { paused: null } },
    { metadata: { uid: "1", labels: { app: "web" } } },
    { metadata: { annotations: undefined } },
  ];
  for (const patch of same) {
    assert.equal(
      mergePatchChanges(OBJECT, patch),
      false,
      JSON.stringify(patch),
    );
  }
});

test("mergePatchChanges finds different, new and deleted fields [J46]", () => {
  const changes: readonly object[] = [
    { spec: { replicas: 3 } },
    { spec: { args: ["b", "a"] } },
    { spec: { args: ["a"] } },
    { spec: { replicas: null } },
    { spec: { template: {} } },
    { metadata: { uid: "2" } },
    { metadata: { labels: { app: "web", tier: "front" } } },
    { data: { key: "value" } },
  ];
  for (const patch of changes) {
    assert.equal(mergePatchChanges(OBJECT, patch), true, JSON.stringify(patch));
  }
});

test("mergePatchChanges agrees with the effect of a merge patch", () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, 0, 1, "a", true),
      fc.array(tie("value"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value")),
    ),
  })).value;
  const fields = fc.dictionary(fc.constantFrom("a", "b", "c"), json);
  fc.assert(fc.property(fields, fields, (object, patch) => {
    const whole = { a: {}, b: {}, c: {}, ...object };
    const changed = !jsonEquals(applyMergePatch(whole, patch), whole);
    // It may report a change where none exists, but never misses one.
    if (changed) assert.equal(mergePatchChanges(whole, patch), true);
  }));
});

test("mergePatchChanges counts pruned fields as changed", () => {
  const pruned = { ...OBJECT, spec: without({ args: [] }, "replicas") };
  assert.equal(mergePatchChanges(pruned, { spec: { replicas: 2 } }), true);
  assert.equal(mergePatchChanges(pruned, { spec: { replicas: null } }), true);
  assert.equal(mergePatchChanges(pruned, { spec: { args: [] } }), false);
  const { metadata } = OBJECT;
  assert.equal(mergePatchChanges({ metadata }, { spec: null }), true);
});

test("jsonPatchChanges finds the changes of a JSON Patch [J44]", () => {
  const replace = { op: "replace", path: "/spec/replicas" } as const;
  assert.equal(jsonPatchChanges(OBJECT, [{ ...replace, value: 2 }]), false);
  assert.equal(jsonPatchChanges(OBJECT, [{ ...replace, value: 3 }]), true);
  const test = { op: "test", path: "/metadata/uid", value: "1" } as const;
  assert.equal(jsonPatchChanges(OBJECT, [test]), false);
  const unfit = { op: "test", path: "/metadata/uid", value: "2" } as const;
  assert.equal(jsonPatchChanges(OBJECT, [unfit]), true, "the server says so");
  const pruned = { ...OBJECT, spec: without({ args: [] }, "replicas") };
  assert.equal(jsonPatchChanges(pruned, [{ ...replace, value: 2 }]), true);
  const remove = { op: "remove", path: "/spec/replicas" } as const;
  assert.equal(jsonPatchChanges(pruned, [remove]), true);
  const inside = { ...replace, path: "/spec/replicas/ready", value: 2 };
  assert.equal(jsonPatchChanges(pruned, [inside]), true);
  assert.equal(jsonPatchChanges(OBJECT, diffJsonPatch(OBJECT, OBJECT)), false);
});

test("replacementChanges compares the part that is written [J47]", () => {
  const status = { ...OBJECT, status: { ready: false } };
  const spec = { ...OBJECT, spec: { replicas: 3 } };
  assert.equal(replacementChanges(OBJECT, { ...OBJECT }, undefined), false);
  assert.equal(replacementChanges(OBJECT, spec, undefined), true);
  assert.equal(replacementChanges(OBJECT, status, "status"), true);
  assert.equal(replacementChanges(OBJECT, spec, "status"), false);
  const managed = {
    ...OBJECT,
    metadata: without({ ...OBJECT.metadata }, "managedFields"),
  };
  assert.equal(replacementChanges(managed, OBJECT, undefined), false);
});

test("mergePatchChanges ignores undefined, which is not sent", () => {
  assert.equal(mergePatchChanges({ a: 1 }, { b: undefined }), false);
  assert.equal(
    mergePatchChanges({ a: { c: 1 } }, { a: { b: undefined } }),
    false,
  );
});

test("replacementChanges ignores the managed fields, which the server writes", () => {
  const object = (manager: string) => ({
    metadata: { name: "a", managedFields: [{ manager }] },
    spec: { a: 1 },
  });
  assert.equal(replacementChanges(object("a"), object("b"), undefined), false);
});
