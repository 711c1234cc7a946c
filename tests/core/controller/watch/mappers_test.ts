import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
import {
  byAnnotation,
  byFunction,
  byLabel,
  byOwner,
  PRIMARY_NAME_ANNOTATION,
  PRIMARY_NAMESPACE_ANNOTATION,
} from "@coracle/operator/sources";
import { fc } from "../../../support/property.ts";
import {
  byOwnership,
  keyTexts,
  mapped,
  ownerAnnotations,
} from "../../../../core/controller/watch/mappers.ts";
import { ReferenceIndex } from "../../../../core/controller/watch/reference_index.ts";

const kind = {
  group: "example.com",
  version: "v2",
  kind: "Gadget",
  plural: "gadgets",
  scope: "Namespaced",
} as const;

function secondary(metadata: Partial<KubernetesObject["metadata"]>) {
  return mapped<KubernetesObject>({
    metadata: { name: "s", namespace: "ns", ...metadata },
  });
}

function owner(apiVersion: string, name: string, controller?: boolean) {
  return { apiVersion, kind: "Gadget", name, uid: name, controller };
}

test("byOwner compares group and kind and ignores the version [OwnerRefMultiVersionIT]", () => {
  const object = secondary({
    ownerReferences: [
      owner("example.com/v1", "a"),
      owner("other.com/v1", "b"),
      { ...owner("example.com/v2", "c"), kind: "Other" },
    ],
  });
  assert.deepEqual([...byOwner().primariesOf(object, kind)], ["ns/a"]);
  assert.deepEqual(
    [...byOwner().primariesOf(object, { ...kind, scope: "Cluster" })],
    ["a"],
  );
});

test("byOwner can be restricted to the controller", () => {
  const object = secondary({
    ownerReferences: [
      owner("example.com/v1", "a"),
      owner("example.com/v1", "b", true),
    ],
  });
  const mapper = byOwner({ controllerOnly: true });
  assert.deepEqual([...mapper.primariesOf(object, kind)], ["ns/b"]);
});

test("byOwnership maps by the controller, and else by annotations of the kind", () => {
  const primaries = (metadata: Partial<KubernetesObject["metadata"]>) =>
    byOwnership().map((mapper) => [
      ...mapper.primariesOf(secondary(metadata), kind),
    ]);
  const annotations = ownerAnnotations({ namespace: "far", name: "a" }, kind);
  const ownerReferences = [
    owner("example.com/v1", "a"),
    owner("example.com/v1", "b", true),
  ];
  assert.deepEqual(primaries({ annotations }), [[], ["far/a"]]);
  assert.deepEqual(primaries({ annotations, ownerReferences }), [["ns/b"], []]);
  const others = { ...annotations, "coracle.dev/primary-kind": "Gadget" };
  assert.deepEqual(primaries({ annotations: others }), [[], []]);
});

test("byLabel and byAnnotation find the name, and optionally the namespace", () => {
  const labelled = secondary({ labels: { of: "a", in: "other" } });
  assert.deepEqual([...byLabel("of").primariesOf(labelled, kind)], ["ns/a"]);
  assert.deepEqual(
    [...byLabel("of", { namespace: "in" }).primariesOf(labelled, kind)],
    ["other/a"],
  );
  assert.deepEqual([...byLabel("none").primariesOf(labelled, kind)], []);
  const annotated = secondary({
    annotations: {
      [PRIMARY_NAME_ANNOTATION]: "a",
      [PRIMARY_NAMESPACE_ANNOTATION]: "far",
    },
  });
  assert.deepEqual([...byAnnotation().primariesOf(annotated, kind)], ["far/a"]);
});

test("byFunction gives keys as text to both the trigger and the index", () => {
  const mapper = byFunction<KubernetesObject, KubernetesObject>((
    { metadata },
  ) => [
    { namespace: metadata.namespace, name: "a" },
    "ns/b",
  ]);
  const object = secondary({});
  assert.deepEqual([...mapper.primariesOf(object, kind)], ["ns/a", "ns/b"]);
  assert.equal(
    mapper.indexValue({ metadata: { namespace: "ns", name: "a" } }),
    "ns/a",
  );
});

test("ReferenceIndex equals a plain map of sets over random histories", () => {
  const name = fc.constantFrom("a", "b", "c", "d");
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.array(name))), (history) => {
      const index = new ReferenceIndex();
      const model = new Map<string, Set<string>>();
      for (const [primary, secondaries] of history) {
        index.set(primary, secondaries);
        model.set(primary, new Set(secondaries));
      }
      for (const key of "abcd") {
        assert.deepEqual(
          index.primariesOf(key).toSorted(),
          [...model].filter(([, set]) => set.has(key)).map(([p]) => p)
            .toSorted(),
        );
      }
    }),
  );
});

test("keyTexts names the type of a wrong key, not its value, a secret perhaps", () => {
  const secret = { metadata: { name: "a" }, data: { password: "s3cret" } };
  const refused = (keys: unknown) => {
    try {
      keyTexts(keys as Iterable<string>);
      return "nothing";
    } catch (error) {
      return String(error);
    }
  };
  const advice = /have a name, as metadata does: received an object$/;
  assert.match(refused([secret]), advice);
  assert.match(refused([undefined]), /received nothing$/);
  assert.match(refused(Promise.resolve()), /must not be async/);
  for (const keys of [null, undefined, "s3cret", secret]) {
    assert.match(refused(keys), /must return a list of keys: received \w+/);
    assert.doesNotMatch(refused(keys), /s3cret/);
  }
});
