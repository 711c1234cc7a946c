import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinSchema } from "../../../dev/apiserver/builtin/go_types.ts";
import { applyStrategicMergePatch } from "../../../dev/apiserver/merge/strategic_merge_patch.ts";
import { StatusError } from "../../../dev/apiserver/status.ts";

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

test("applyStrategicMergePatch deletes each item that $patch names", () => {
  const patch = {
    spec: {
      containers: [{ name: "a", $patch: "delete" }, {
        name: "b",
        $patch: "delete",
      }],
    },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, two, patch), {
    spec: { containers: [] },
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

test("applyStrategicMergePatch leaves items where they are that no order names", () => {
  const containers = ["a", "injected", "b"].map((name) => ({ name }));
  const order = {
    "$setElementOrder/containers": [{ name: "a" }, { name: "b" }],
  };
  for (const more of [{}, { containers: [{ name: "b" }] }]) {
    assert.deepEqual(
      applyStrategicMergePatch(pod, { spec: { containers } }, {
        spec: { ...order, ...more },
      }),
      { spec: { containers } },
    );
  }
});

test("applyStrategicMergePatch merges a list with $setElementOrder once", () => {
  // As kubectl apply sends an added item in a new order.
  const patch = {
    spec: {
      "$setElementOrder/containers": [
        { name: "c" },
        { name: "b" },
        { name: "a" },
      ],
      containers: [{ name: "c", image: "z" }, { name: "a", image: "w" }],
    },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, two, patch), {
    spec: {
      containers: [
        { name: "c", image: "z" },
        { name: "b", image: "y" },
        { name: "a", image: "w" },
      ],
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
    StatusError,
  );
});

test("applyStrategicMergePatch merges lists of strings in the patch's order", () => {
  const object = { metadata: { finalizers: ["a", "b"] } };
  const patch = { metadata: { finalizers: ["c", "a", "c"] } };
  assert.deepEqual(applyStrategicMergePatch(pod, object, patch), {
    metadata: { finalizers: ["c", "a", "b"] },
  });
});

test("applyStrategicMergePatch keeps only the fields in $retainKeys", () => {
  const object = { spec: { nodeName: "a", hostname: "b", schedulerName: "c" } };
  const patch = {
    spec: { $retainKeys: ["hostname", "nodeName"], nodeName: "x" },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, object, patch), {
    spec: { nodeName: "x", hostname: "b" },
  });
});

test("applyStrategicMergePatch takes directives beside $retainKeys", () => {
  const object = { spec: { ...two.spec, nodeName: "a" } };
  const patch = {
    spec: {
      $retainKeys: ["containers"],
      "$setElementOrder/containers": [{ name: "b" }, { name: "a" }],
    },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, object, patch), {
    spec: { containers: two.spec.containers.toReversed() },
  });
});

/** Refused patches with the status and message of kube-apiserver. */
const REFUSED: readonly (readonly [unknown, number, RegExp])[] = [
  ["text", 400, /^strategic merge patch format is not supported$/],
  [
    { spec: { $retainKeys: ["hostname"], nodeName: "x" } },
    400,
    /^invalid patch format of retainKeys$/,
  ],
  [
    { spec: { $retainKeys: "hostname" } },
    400,
    /^invalid patch format of retainKeys$/,
  ],
  [
    { spec: { $deleteFromPrimitiveList: ["a"] } },
    400,
    /^invalid patch format of primitive list$/,
  ],
  [
    { spec: { $setElementOrder: ["a"] } },
    400,
    /^invalid patch format of setElementOrder list$/,
  ],
  [
    { spec: { containers: ["a"] } },
    500,
    /^list element types are not identical: /,
  ],
  [
    { spec: { "$setElementOrder/containers": "a" } },
    500,
    /^expected a \[\]interface \{\}, but received a string$/,
  ],
  [
    {
      spec: {
        "$setElementOrder/containers": [{ name: "b" }, { name: "a" }],
        containers: [{ name: "a" }, { name: "b" }],
      },
    },
    500,
    /^The order in patch list:\n.*\n doesn't match \$setElementOrder list:\n.*\n$/s,
  ],
  [
    { spec: { containers: [{ image: "x" }] } },
    500,
    /does not contain declared merge key: name$/,
  ],
];

test("applyStrategicMergePatch refuses as kube-apiserver, with its messages", () => {
  for (const [patch, code, message] of REFUSED) {
    assert.throws(
      () => applyStrategicMergePatch(pod, two, patch),
      (error: unknown) => {
        assert.ok(error instanceof StatusError, String(error));
        assert.match(error.message, message);
        assert.equal(error.status.code, code, error.message);
        return true;
      },
    );
  }
});

test("applyStrategicMergePatch removes a field by null that $retainKeys does not list", () => {
  const object = { spec: { nodeName: "a", hostname: "b" } };
  const patch = {
    spec: { $retainKeys: ["hostname"], nodeName: null, hostname: "x" },
  };
  assert.deepEqual(applyStrategicMergePatch(pod, object, patch), {
    spec: { hostname: "x" },
  });
});
