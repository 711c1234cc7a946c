import assert from "node:assert/strict";
import { test } from "node:test";
import type { DiscoveredResource, KindSelector } from "@coracle/operator/core";
import type { CrdObject } from "../../../../core/crd/crd_object.ts";
import {
  checkKindSelector,
  discoveredKinds,
  kindOfDefinition,
} from "../../../../core/controller/kinds/kind_selector.ts";

/** Definition of apples in versions such as `v1` or `v2alpha1 unserved`. */
function definition(
  versions: readonly string[],
  established: "True" | "False" = "True",
): CrdObject {
  const names = {
    kind: "Apple",
    plural: "apples",
    singular: "apple",
    listKind: "AppleList",
    categories: ["fruit"],
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "apples.eat.example.com" },
    spec: {
      group: "eat.example.com",
      scope: "Namespaced",
      names,
      versions: versions.map((text) => {
        const [name = "", served] = text.split(" ");
        return { name, served: served === undefined, storage: false };
      }),
    },
    status: {
      acceptedNames: names,
      conditions: [{ type: "Established", status: established }],
    },
  } as unknown as CrdObject;
}

test("A definition gives the version that the server prefers, and keeps it", () => {
  const versionOf = (versions: readonly string[], current?: string) =>
    kindOfDefinition(definition(versions), {}, current)?.version;
  assert.equal(versionOf(["v1beta1", "v1", "v2alpha1"]), "v1");
  assert.equal(versionOf(["v1", "v10", "v2"]), "v10");
  assert.equal(versionOf(["v1", "v2 unserved"]), "v1");
  assert.equal(versionOf(["v1", "v2"], "v1"), "v1");
  assert.equal(versionOf(["v1 unserved", "v2"], "v1"), "v2");
  assert.equal(versionOf(["v1 unserved"], "v1"), undefined);
  assert.equal(
    kindOfDefinition(definition(["v1"], "False"), {}, undefined),
    undefined,
  );
});

test("Groups, domains and categories select kinds", () => {
  const selects = (selector: KindSelector) =>
    kindOfDefinition(definition(["v1"]), selector, undefined) !== undefined;
  assert.ok(selects({}));
  assert.ok(selects({ groups: ["apps", "eat.example.com"] }));
  assert.ok(selects({ groups: ["*.example.com"] }));
  assert.ok(!selects({ groups: ["*.eat.example.com"] }));
  assert.ok(!selects({ groups: ["example.com"] }));
  assert.ok(!selects({ groups: [] }));
  assert.ok(selects({ categories: ["all", "fruit"] }));
  assert.ok(!selects({ categories: ["all"] }));
  assert.ok(!selects({ groups: ["apps"], categories: ["fruit"] }));
});

test("Discovered kinds can be watched, once each, and have no definition", () => {
  const resource = (
    group: string,
    version: string,
    plural: string,
    verbs = ["list", "watch"],
  ) => ({ group, version, plural, kind: plural, scope: "Cluster", verbs });
  const found = discoveredKinds(
    [
      resource("apps", "v1", "deployments"),
      resource("apps", "v1beta1", "deployments"),
      resource("", "v1", "bindings", ["create"]),
      resource("eat.example.com", "v1", "apples"),
    ] as unknown as readonly DiscoveredResource[],
    {},
    (name) => name === "apples.eat.example.com",
  );
  assert.deepEqual(
    found.map(({ group, version, plural }) => `${group}/${version} ${plural}`),
    ["apps/v1 deployments"],
  );
});

test("A selector with a mistake is refused by its name", () => {
  const refused = (selector: unknown, why: RegExp) =>
    assert.throws(
      () =>
        checkKindSelector(selector as KindSelector, "operator.watchKinds()"),
      why,
    );
  refused({ group: ["apps"] }, /did you mean "groups"/);
  refused({ groups: ["apps/v1"] }, /a group is a domain.*"apps\/v1"/);
  refused({ groups: ["*"] }, /a group is a domain/);
  refused({ groups: ["core"] }, /"" for the core group: received "core"/);
  refused({ labelSelector: "a in (" }, /Cannot/);
  refused(undefined, /"selector" must be an object/);
});
