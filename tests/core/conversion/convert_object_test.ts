import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { UntypedObject } from "@coracle/operator/client";
import { defineKind } from "@coracle/operator/crd";
import {
  convertObject,
  type FailedConversion,
  KEPT_ANNOTATION,
} from "../../../core/conversion/convert_object.ts";
import {
  FAILED_ANNOTATION,
  failureOf,
} from "../../../core/conversion/unconverted.ts";
import { Fleet, fleet } from "./versioned_kind.ts";

const FULL = fleet("v1", {
  min: 1,
  max: 5,
  boats: [{ name: "gull", mast: 2 }, { name: "tern" }],
  notes: [{ text: "new", by: "ann" }, { text: "old", by: "bob" }],
}, { labels: { a: "b" }, annotations: { mine: "1" }, resourceVersion: "7" });

function convert(object: UntypedObject, to: string): UntypedObject {
  // As a server sends and receives it.
  return JSON.parse(JSON.stringify(convertObject(Fleet, object, to)));
}

test("A chain of versions converts an object by all its functions", () => {
  const old = convert(FULL, "v1alpha1");
  assert.equal(old.apiVersion, "sea.example.org/v1alpha1");
  assert.deepEqual(old.spec, { size: "1" });
  assert.deepEqual(old.status, { afloat: 2 });
  const { annotations, ...metadata } = old.metadata;
  assert.deepEqual(metadata, {
    name: "a",
    namespace: "default",
    uid: "1",
    resourceVersion: "7",
    labels: { a: "b" },
  });
  assert.deepEqual(Object.keys(annotations ?? {}), ["mine", KEPT_ANNOTATION]);
});

test("A round trip through versions that express less loses nothing", () => {
  for (const version of ["v1alpha1", "v1beta1"]) {
    assert.deepEqual(convert(convert(FULL, version), "v1"), FULL);
  }
  const beta = convert(FULL, "v1beta1");
  assert.deepEqual(convert(convert(beta, "v1alpha1"), "v1beta1"), beta);
  assert.deepEqual(convert(convert(beta, "v1alpha1"), "v1"), FULL);
  const old = fleet("v1alpha1", { size: "3", colour: "red" });
  assert.deepEqual(convert(convert(old, "v1"), "v1alpha1"), old);
});

test("A conversion that loses nothing writes no annotation", () => {
  const old = fleet("v1alpha1", { size: "3" });
  const { spec, metadata } = convert(old, "v1beta1");
  assert.deepEqual(spec, { size: 3 });
  assert.equal(metadata.annotations, undefined);
  assert.equal(convertObject(Fleet, old, "v1alpha1"), old);
});

test("A field that was changed in the other version keeps its change", () => {
  const beta = convert(FULL, "v1beta1");
  const { spec } = convert({
    ...beta,
    spec: { size: 4, boats: ["tern", "gull", "auk"], notes: ["old", "fresh"] },
  }, "v1");
  assert.deepEqual(spec, {
    min: 4,
    max: 4, // both follow the new size, which has replaced what was kept
    boats: [{ name: "tern" }, { name: "gull", mast: 2 }, { name: "auk" }],
    notes: [{ text: "old", by: "bob" }, { text: "fresh", by: "" }],
  });
});

test("An object whose function throws stands empty, and is restored", () => {
  const failures: FailedConversion[] = [];
  const broken = fleet("v1alpha1", { size: "many" });
  const empty = convertObject(Fleet, broken, "v1", {
    failed: (failure) => void failures.push(failure),
  });
  assert.deepEqual([empty.spec, empty.status], [{}, undefined]);
  assert.equal(empty.metadata.name, "a");
  const reason = "up of v1alpha1 has thrown Error: no size: many";
  assert.equal(failureOf(empty), reason);
  assert.deepEqual(
    failures.map(({ from, to, reason }) => [from, to, reason]),
    [["v1alpha1", "v1", reason]],
  );
  assert.deepEqual(convert(empty, "v1alpha1"), broken);
  // Through another version, and after a change of the metadata.
  const labelled = {
    ...empty,
    metadata: { ...empty.metadata, labels: { by: "me" } },
  };
  const beta = convert(labelled, "v1beta1");
  assert.equal(failureOf(beta as { metadata: typeof beta.metadata }), reason);
  assert.deepEqual(convert(beta, "v1alpha1"), {
    ...broken,
    metadata: { ...broken.metadata, labels: { by: "me" } },
  });
});

test("An object that could not be converted and got a spec keeps the spec", () => {
  const empty = convertObject(Fleet, fleet("v1alpha1", { size: "x" }), "v1");
  const mended = { ...empty, spec: { min: 2, max: 2, boats: [] } };
  assert.equal(failureOf(mended), undefined);
  const old = convert(mended, "v1alpha1");
  assert.deepEqual(old.spec, { size: "2" });
  assert.equal(old.metadata.annotations?.[FAILED_ANNOTATION], undefined);
});

/** Reason of the failure of a conversion by a function. */
function failure(up: (object: never) => unknown): string | undefined {
  const kind = defineKind({
    group: "sea.example.org",
    version: "v2",
    kind: "Boat",
    spec: z.object({ size: z.int() }),
    versions: [{
      name: "v1",
      spec: z.object({ size: z.int() }),
      up: up as () => { spec: { size: number } },
      down: ({ spec }) => ({ spec }),
    }],
  });
  const object = {
    apiVersion: "sea.example.org/v1",
    kind: "Boat",
    metadata: { name: "a", labels: { a: "b" }, finalizers: ["x"] },
    spec: { size: 1 },
  };
  return failureOf(convertObject(kind, object, "v2"));
}

for (
  const [what, up, reason] of [
    ["nothing", () => undefined, /up of v1 must return an object with a spec/],
    ["a promise", async () => await ({ spec: {} }), /and no promise/],
    ["no spec", () => ({ status: {} }), /must return an object with a spec/],
    ["another field", () => ({ spec: {}, data: {} }), /returned "data"/],
    [
      "another name",
      () => ({ spec: {}, metadata: { name: "b" } }),
      /changed metadata.name: only labels and annotations can change/,
    ],
    [
      "labels that are numbers",
      () => ({ spec: {}, metadata: { labels: { a: 1 } } }),
      /returned labels that are no texts/,
    ],
    [
      "a date",
      () => ({ spec: { at: new Date(0) } }),
      /returned spec.at as a Date, which JSON does not have/,
    ],
    [
      "a function",
      () => ({ spec: { list: [() => 1] } }),
      /returned spec.list\[0\] as function/,
    ],
    ["no number", () => ({ spec: { size: NaN } }), /spec.size as number/],
    [
      "the object that it has changed",
      (object: { spec: { size: number } }) => {
        object.spec.size = 2;
        return object;
      },
      /up of v1 has thrown TypeError/,
    ],
  ] as const
) {
  test(`A conversion that returns ${what} is a failed object`, () => {
    assert.match(failure(up as never) ?? "", reason);
  });
}

test("A conversion may move fields into labels and annotations, and back", () => {
  const kind = defineKind({
    group: "sea.example.org",
    version: "v2",
    kind: "Boat",
    spec: z.object({ owner: z.string() }),
    versions: [{
      name: "v1",
      spec: z.object({}),
      up: ({ metadata: { labels: { owner = "", ...labels } } }) => ({
        metadata: { labels },
        spec: { owner },
      }),
      down: ({ metadata, spec: { owner } }) => ({
        metadata: { ...metadata, labels: { ...metadata.labels, owner } },
        spec: {},
        status: undefined,
      }),
    }],
  });
  const old = {
    apiVersion: "sea.example.org/v1",
    kind: "Boat",
    metadata: { name: "a", labels: { owner: "ann", a: "b" } },
    spec: {},
  };
  const boat = convertObject(kind, old, "v2");
  assert.deepEqual(boat.spec, { owner: "ann" });
  assert.deepEqual(boat.metadata, { name: "a", labels: { a: "b" } });
  assert.deepEqual(
    JSON.parse(JSON.stringify(convertObject(kind, boat, "v1"))),
    { ...old, metadata: { ...old.metadata, labels: { a: "b", owner: "ann" } } },
  );
});

test("Annotations of others' making change nothing", () => {
  for (const text of ["{", "[]", '{"v1":[{"path":5}]}', '{"v1":5}', "null"]) {
    const annotations = { [KEPT_ANNOTATION]: text, [FAILED_ANNOTATION]: text };
    const object = fleet("v1beta1", { size: 1 }, { annotations });
    const { spec, metadata } = convert(object, "v1");
    assert.deepEqual(spec, { min: 1, max: 1, boats: [] });
    assert.equal(metadata.annotations?.[FAILED_ANNOTATION], undefined);
  }
  const path = ["spec", "__proto__", "polluted"];
  const kept = {
    v1: [{ path: ["spec", "__proto__"], is: { a: 1 } }, { path, is: 1 }],
  };
  const object = fleet("v1beta1", { size: 1, boats: [] }, {
    annotations: { [KEPT_ANNOTATION]: JSON.stringify(kept) },
  });
  convert(object, "v1");
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

test("What does not fit into the annotations fails the conversion", () => {
  const notes = [{ text: "", by: "a".repeat(300_000) }];
  const object = fleet("v1", { min: 1, max: 1, boats: [], notes });
  assert.throws(
    () => convert(object, "v1beta1"),
    /Cannot convert a: what the version cannot express does not fit/,
  );
  assert.throws(() => convert(object, "v9"), /no such version: received v9/);
});
