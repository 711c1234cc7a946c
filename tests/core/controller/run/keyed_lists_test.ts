import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema } from "@coracle/operator/core";
import {
  mentionsKeyedList,
  mergeKeyedLists,
} from "../../../../core/controller/run/keyed_lists.ts";

const PORTS: OpenApiSchema = {
  properties: {
    ports: {
      items: { properties: { protocol: { default: "TCP" } } },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    names: { items: {} },
  },
};

test("mergeKeyedLists keeps the entries that a patch does not mention", () => {
  const states = {
    given: { conditions: [{ type: "A", status: "1" }] },
    current: {
      conditions: [{ type: "A", status: "2" }, { type: "B", status: "2" }],
    },
  };
  // A is as it was given, so that its newer state stays.
  const patch = {
    conditions: [{ type: "A", status: "1" }, { type: "C", status: "3" }],
  };
  assert.deepEqual(mergeKeyedLists(patch, undefined, states), {
    conditions: [
      { type: "A", status: "2" },
      { type: "B", status: "2" },
      { type: "C", status: "3" },
    ],
  });
});

test("mergeKeyedLists identifies entries with the defaults of their keys", () => {
  const current = { ports: [{ port: 80, protocol: "TCP", name: "web" }] };
  const patch = { ports: [{ port: 80, name: "http" }] };
  assert.deepEqual(mergeKeyedLists(patch, PORTS, { given: {}, current }), {
    ports: [{ port: 80, protocol: "TCP", name: "http" }],
  });
});

test("mergeKeyedLists knows the owner references of every kind", () => {
  const current = { metadata: { ownerReferences: [{ uid: "1" }] } };
  const patch = { metadata: { ownerReferences: [{ uid: "2" }] } };
  for (const schema of [undefined, PORTS]) {
    const merged = mergeKeyedLists(patch, schema, { given: {}, current });
    assert.deepEqual(merged, {
      metadata: { ownerReferences: [{ uid: "1" }, { uid: "2" }] },
    });
  }
});

test("mentionsKeyedList finds lists whose entries all have their keys", () => {
  const cases: readonly [object, boolean][] = [
    [{ ports: [{ port: 80 }] }, true],
    [{ ports: [{ port: 80 }, { name: "web" }] }, false],
    [{ names: [{ port: 80 }] }, false],
    [{ names: { port: 80 }, other: null }, false],
  ];
  for (const [patch, expected] of cases) {
    assert.equal(mentionsKeyedList(patch, PORTS), expected);
  }
  assert.equal(
    mentionsKeyedList({ conditions: [{ type: "A" }] }, undefined),
    true,
  );
});

test("mergeKeyedLists merges an entry that differs from the given one", () => {
  const given = { conditions: [{ type: "A", status: "1" }] };
  const current = { conditions: [{ type: "A", status: "2", reason: "x" }] };
  const patch = { conditions: [{ type: "A", status: "3" }] };
  assert.deepEqual(mergeKeyedLists(patch, undefined, { given, current }), {
    conditions: [{ type: "A", status: "3", reason: "x" }],
  });
});

test("mentionsKeyedList finds lists in maps, and no schema of inherited names", () => {
  const ports = { ports: [{ port: 80 }] };
  const maps = { properties: { sites: { additionalProperties: PORTS } } };
  assert.equal(mentionsKeyedList({ sites: { a: ports } }, maps), true);
  assert.equal(mentionsKeyedList({ constructor: ports }, maps), false);
});

test("mergeKeyedLists changes the first of entries with the same key", () => {
  const twice = {
    conditions: [{ type: "A", status: "1" }, { type: "A", status: "2" }],
  };
  const patch = { conditions: [{ type: "A", reason: "x" }] };
  const states = { given: twice, current: twice };
  assert.deepEqual(mergeKeyedLists(patch, undefined, states), {
    conditions: [{ type: "A", status: "1", reason: "x" }],
  });
});
