import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinSchema } from "../../../core/apiserver/builtin/go_types.ts";
import {
  applyStrategicMergePatch,
  StrategicPatchError,
} from "../../../core/patch/strategic_merge_patch.ts";

const pod = builtinSchema("io.k8s.api.core.v1.Pod");
const two = {
  spec: {
    containers: [{ name: "a", image: "x" }, { name: "b", image: "y" }],
  },
};

test("applyStrategicMergePatch merges items of a list by their key", () => {
  const patch = { spec: { containers: [{ name: "b", image: "z" }] } };
  assert.deepEqual(applyStrategicMergePatch(pod, two, patch), {
    spec: {
      containers: [{ name: "a", image: "x" }, { name: "b", image: "z" }],
    },
  });
});

test("applyStrategicMergePatch deletes an item by $patch", () => {
  const patch = { spec: { containers: [{ name: "a", $patch: "delete" }] } };
  assert.deepEqual(applyStrategicMergePatch(pod, two, patch), {
    spec: { containers: [{ name: "b", image: "y" }] },
  });
});

test("applyStrategicMergePatch replaces a list by $patch", () => {
  const patch = {
    spec: { containers: [{ $patch: "replace" }, { name: "c" }] },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, two, patch), {
    spec: { containers: [{ name: "c" }] },
  });
});

test("applyStrategicMergePatch orders items by $setElementOrder", () => {
  const patch = {
    spec: {
      "$setElementOrder/containers": [{ name: "b" }, { name: "a" }],
    },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, two, patch), {
    spec: {
      containers: [{ name: "b", image: "y" }, { name: "a", image: "x" }],
    },
  });
});

test("applyStrategicMergePatch deletes values by $deleteFromPrimitiveList", () => {
  const patch = {
    metadata: { "$deleteFromPrimitiveList/finalizers": ["a"] },
  };
  const object = { metadata: { finalizers: ["a", "b"] } };
  assert.deepEqual(applyStrategicMergePatch(pod, object, patch), {
    metadata: { finalizers: ["b"] },
  });
});

test("applyStrategicMergePatch refuses an unknown directive", () => {
  assert.throws(
    () => applyStrategicMergePatch(pod, two, { spec: { $patch: "turn" } }),
    StrategicPatchError,
  );
});
