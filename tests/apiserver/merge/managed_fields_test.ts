import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "../../../dev/apiserver/status.ts";
import {
  apiVersion,
  apply,
  owned,
  type Spec,
  update,
} from "../../support/managed_widget.ts";

test("applyManaged creates an object and owns the applied fields, not parents", () => {
  const object = apply(undefined, "one", { n: 1, deep: { x: 1 } });
  assert.deepEqual(object.spec, { n: 1, deep: { x: 1 } });
  assert.deepEqual(owned(object), { "one Apply": [".spec.n", ".spec.deep.x"] });
});

test("applyManaged reports conflicts with other managers, fields in order", () => {
  const live = apply(undefined, "one", { n: 1, color: "red", deep: { x: 1 } });
  assert.throws(
    () => apply(live, "two", { n: 2, color: "blue", deep: { x: 2 } }),
    (error) => {
      assert.ok(error instanceof StatusError);
      assert.equal(error.status.code, 409);
      assert.equal(
        error.message,
        'Apply failed with 3 conflicts: conflicts with "one":\n' +
          "- .spec.color\n- .spec.n\n- .spec.deep.x",
      );
      assert.deepEqual(error.status.details?.causes?.[1], {
        reason: "FieldManagerConflict",
        message: 'conflict with "one"',
        field: ".spec.n",
      });
      return true;
    },
  );
});

test("applyManaged shares a field of equal value without a new time", () => {
  const live = apply(undefined, "one", { n: 1 });
  const shared = apply(live, "two", { n: 1 });
  assert.deepEqual(owned(shared), {
    "one Apply": [".spec.n"],
    "two Apply": [".spec.n"],
  });
  assert.equal(shared.metadata.managedFields?.[0]?.manager, "two");
  assert.equal(shared.metadata.managedFields?.[0]?.time, undefined);
});

test("applyManaged takes fields from their owner when forced", () => {
  const live = apply(undefined, "one", { n: 1, color: "red" });
  const taken = apply(live, "two", { n: 2 }, true);
  assert.deepEqual(taken.spec, { n: 2, color: "red" });
  assert.deepEqual(owned(taken), {
    "one Apply": [".spec.color"],
    "two Apply": [".spec.n"],
  });
});

test("applyManaged removes abandoned fields that nobody else owns", () => {
  let live = apply(undefined, "one", { n: 1, color: "red", deep: { x: 1 } });
  live = apply(live, "two", { color: "red" });
  live = apply(live, "one", { deep: { x: 1 } });
  assert.deepEqual(live.spec, { color: "red", deep: { x: 1 } });
  live = apply(live, "two", { tags: ["a"] });
  assert.deepEqual(live.spec, { deep: { x: 1 }, tags: ["a"] });
});

test("applyManaged keeps the items of others in keyed lists and sets", () => {
  let live = apply(undefined, "one", {
    parts: [{ name: "p", size: 1 }, { name: "q" }],
    tags: ["a", "b"],
  });
  live = apply(live, "two", { parts: [{ name: "r" }], tags: ["b", "c"] });
  assert.deepEqual(live.spec, {
    parts: [{ name: "p", size: 1 }, { name: "q" }, { name: "r" }],
    tags: ["a", "b", "c"],
  });
  live = apply(live, "one", { parts: [{ name: "q" }], tags: ["b"] });
  assert.deepEqual(live.spec, {
    parts: [{ name: "q" }, { name: "r" }],
    tags: ["b", "c"],
  });
});

test("applyManaged replaces atomic lists and maps as a whole", () => {
  const live = apply(undefined, "one", { steps: ["a"], block: { x: "1" } });
  const next = apply(live, "one", { steps: ["b"], block: { y: "2" } });
  assert.deepEqual(next.spec, { steps: ["b"], block: { y: "2" } });
  assert.throws(
    () => apply(next, "two", { steps: ["c"] }),
    /Apply failed with 1 conflict: conflict with "one": .spec.steps/,
  );
});

test("applyManaged names an updating manager with its version", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  assert.throws(
    () => apply(live, "one", { n: 2 }),
    /conflict with "creator" using example.com\/v1: .spec.n$/,
  );
});

test("applyManaged gives fields without an owner to before-first-apply", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  delete live.metadata.managedFields;
  const next = apply(live, "one", { color: "red" });
  assert.deepEqual(owned(next), {
    "one Apply": [".spec.color"],
    "before-first-apply Update": [".spec", ".spec.n"],
  });
});

const REFUSED_CONFIGURATIONS: [title: string, spec: Spec, message: string][] = [
  ["an unknown field", { nope: 1 }, ".spec.nope: field not declared in schema"],
  [
    "a wrong type",
    { n: "text" },
    ".spec.n: expected numeric (int or float), got string",
  ],
  [
    "a duplicate key",
    { parts: [{ name: "p" }, { name: "p" }] },
    '.spec.parts: duplicate entries for key [name="p"]',
  ],
  [
    "a missing key",
    { parts: [{ size: 1 }] },
    '.spec.parts: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)',
  ],
  [
    "a duplicate in a set",
    { tags: ["b", "b"] },
    '.spec.tags: duplicate entries for key [="b"]',
  ],
];

for (const [title, spec, message] of REFUSED_CONFIGURATIONS) {
  test(`applyManaged refuses ${title} with the message of kube-apiserver`, () => {
    assert.throws(() => apply(undefined, "one", spec), {
      message:
        `failed to create typed patch object (/a; example.com/v1, Kind=Widget): ${message}`,
    });
  });
}

test("updateManagedFields assigns the fields of a new object to its creator", () => {
  const object = update(undefined, "creator", { spec: { n: 1 } });
  assert.deepEqual(object.metadata.managedFields, [{
    manager: "creator",
    operation: "Update",
    apiVersion,
    time: object.metadata.managedFields?.[0]?.time,
    fieldsType: "FieldsV1",
    fieldsV1: { "f:spec": { ".": {}, "f:n": {} } },
  }]);
});

test("updateManagedFields moves changed fields and drops removed ones", () => {
  let live = apply(undefined, "one", { n: 1, color: "red", tags: ["a"] });
  live = update(live, "two", { spec: { n: 2, tags: ["a"] } });
  assert.deepEqual(owned(live), {
    "one Apply": ['.spec.tags[="a"]'],
    "two Update": [".spec.n"],
  });
});

test("updateManagedFields keeps all entries when nothing changes", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  const next = update(live, "other", { spec: { n: 1 } });
  assert.deepEqual(next.metadata.managedFields, live.metadata.managedFields);
});

test("updateManagedFields has separate entries per subresource", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  const next = update(
    live,
    "creator",
    { spec: { n: 1 }, status: { phase: "x" } },
    "status",
  );
  assert.deepEqual(
    next.metadata.managedFields?.map(({ subresource, fieldsV1 }) => [
      subresource,
      fieldsV1,
    ]),
    [
      [undefined, { "f:spec": { ".": {}, "f:n": {} } }],
      ["status", { "f:status": { ".": {}, "f:phase": {} } }],
    ],
  );
});

test("updateManagedFields resets all owners on request", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  for (const managedFields of [[], [{}]]) {
    const reset = update(live, "other", {
      metadata: { name: "a", uid: "1", managedFields },
      spec: { n: 1 },
    });
    assert.equal(reset.metadata.managedFields, undefined);
    const after = update(reset, "other", { spec: { n: 2 } });
    assert.equal(after.metadata.managedFields, undefined);
  }
});

test("updateManagedFields ignores malformed entries", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  const next = update(live, "other", {
    metadata: {
      name: "a",
      uid: "1",
      managedFields: [{ manager: "x", operation: "Update" }],
    },
    spec: { n: 1 },
  });
  assert.deepEqual(next.metadata.managedFields, live.metadata.managedFields);
});

for (
  const [what, status] of [
    ["a text in place of an object", "Ready"],
    ["a list in place of an object", []],
    ["a number in place of a text", { phase: 1 }],
    ["a field that is not in the schema", { unknown: "a" }],
  ] as const
) {
  test(`updateManagedFields removes all owners for a status with ${what}`, () => {
    const next = { spec: { n: 2 }, status };
    const created = update(undefined, "creator", next);
    assert.equal(created.metadata.managedFields, undefined);
    const live = update(undefined, "creator", { spec: { n: 1 } });
    const updated = update(live, "other", next);
    assert.equal(updated.metadata.managedFields, undefined);
    // Nor has the object an owner from then on.
    const later = update(updated, "other", { spec: { n: 3 } });
    assert.equal(later.metadata.managedFields, undefined);
  });
}

test("updateManagedFields removes all owners of an object whose schema changed", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  live.spec = { n: "1" };
  const next = update(live, "other", { spec: { n: 1 } });
  assert.equal(next.metadata.managedFields, undefined);
});

test("applyManaged refuses an object without owners that does not fit its schema", () => {
  const live = update(undefined, "creator", { spec: { n: "1" } });
  assert.equal(live.metadata.managedFields, undefined);
  assert.throws(() => apply(live, "one", { n: "2" }), {
    message:
      "failed to create manager for existing fields: failed to convert new object (/a; example.com/v1, Kind=Widget) to smd typed: .spec.n: expected numeric (int or float), got string",
  });
});

test("updateManagedFields keeps the owners of a set with repeated items", () => {
  const live = update(undefined, "creator", { spec: { tags: ["a", "a"] } });
  const next = update(live, "other", { spec: { n: 1, tags: ["a", "a"] } });
  assert.deepEqual(owned(next)["other Update"], [".spec.n"]);
});

test("updateManagedFields merges the oldest of more than ten updates", () => {
  let live = update(undefined, "m0", { spec: { labels: {} } });
  const labels: Record<string, string> = {};
  for (let i = 1; i <= 14; i++) {
    labels[`l${i}`] = "x";
    live = update(live, `m${i}`, { spec: { labels: { ...labels } } });
  }
  const managers = live.metadata.managedFields?.map(({ manager }) => manager);
  assert.equal(managers?.length, 10);
  assert.ok(managers?.includes("ancient-changes"));
  assert.ok(managers?.includes("m14"));
});

test("applyManaged by kubectl migrates fields of client-side apply", () => {
  const spec = { n: 1, color: "red" };
  const text = JSON.stringify({
    apiVersion,
    kind: "Widget",
    metadata: { name: "a" },
    spec,
  });
  const annotations = {
    "kubectl.kubernetes.io/last-applied-configuration": text,
  };
  const live = update(undefined, "kubectl-client-side-apply", {
    metadata: { name: "a", uid: "1", annotations },
    spec,
  });
  assert.throws(() => apply(live, "someone", { n: 2 }), /1 conflict/);
  const next = apply(live, "kubectl", { n: 2 });
  assert.deepEqual(next.spec, { n: 2, color: "red" });
  const last = next.metadata.annotations
    ?.["kubectl.kubernetes.io/last-applied-configuration"];
  assert.equal(JSON.parse(last ?? "").spec.n, 2);
});

test("updateManagedFields keeps an owner of every field when it merges old updates", () => {
  const names = Array.from({ length: 16 }, (_, number) => `l${number}`);
  const labels = Object.fromEntries(names.map((name) => [name, "x"]));
  const live = update(undefined, "creator", { spec: { labels } });
  // As of a client that restores an object with its managed fields.
  const managedFields = names.map((name, number) => ({
    manager: `m${number}`,
    operation: "Update" as const,
    apiVersion,
    time: `2023-01-01T00:00:${10 + number}Z`,
    fieldsType: "FieldsV1" as const,
    fieldsV1: { "f:spec": { "f:labels": { [`f:${name}`]: {} } } },
  }));
  const merged = update(live, "restore", {
    metadata: { name: "a", uid: "1", managedFields },
    spec: { labels },
  });
  assert.equal(merged.metadata.managedFields?.length, 10);
  const fields = Object.values(owned(merged)).flat();
  const missing = names.filter((name) =>
    !fields.includes(`.spec.labels.${name}`)
  );
  assert.deepEqual(missing, []);
});

test("updateManagedFields ignores the managed fields in a write of a subresource", () => {
  const live = update(undefined, "creator", { spec: { n: 1 } });
  const theirs = [
    [],
    [{}],
    update(undefined, "thief", { spec: { n: 1 } }).metadata.managedFields,
  ];
  for (const managedFields of theirs) {
    const next = update(live, "other", {
      metadata: { name: "a", uid: "1", managedFields } as never,
      spec: { n: 1 },
      status: { phase: "Ready" },
    }, "status");
    assert.deepEqual(owned(next), {
      "creator Update": [".spec", ".spec.n"],
      "other Update": [".status", ".status.phase"],
    });
  }
});

for (
  const [what, spec] of [
    ["changed", { n: 3, color: "red" }],
    ["added", { n: 1, color: "red", deep: { x: 5 } }],
  ] as const
) {
  test(`applyManaged by kubectl keeps a field that was ${what} after its last apply`, () => {
    const last = { n: 1, color: "red" };
    const annotations = {
      "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify({
        apiVersion,
        kind: "Widget",
        metadata: { name: "a" },
        spec: last,
      }),
    };
    const metadata = { name: "a", uid: "1", annotations };
    let live = update(undefined, "kubectl-client-side-apply", {
      metadata,
      spec: last,
    });
    live = update(live, "someone", { metadata, spec });
    assert.throws(
      () => apply(live, "kubectl", { n: 2, deep: { x: 1 } }),
      /conflict with "someone"/,
    );
  });
}

test("applyManaged by kubectl drops its annotation when that becomes too long", () => {
  const name = "kubectl.kubernetes.io/last-applied-configuration";
  const live = update(undefined, "kubectl-client-side-apply", {
    metadata: {
      name: "a",
      uid: "1",
      annotations: { [name]: "{}", other: "x" },
    },
    spec: { n: 1 },
  });
  const color = (length: number) =>
    apply(live, "kubectl", { color: "x".repeat(length) }).metadata.annotations;
  assert.ok(color(200_000)?.[name]?.includes("xxx"));
  assert.deepEqual(color(256 * 1024), { other: "x" });
});
