import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "@coracle/operator/client";
import {
  ConfigMap,
  type KubernetesObject,
  Secret,
} from "@coracle/operator/kinds";
import { byLabel, watch } from "@coracle/operator/sources";
import {
  bulkDependent,
  kubernetesDependent,
} from "@coracle/operator/workflows";
import { wouldDelete } from "../../../workflows/dependents/kubernetes_dependent.ts";

const list = { desired: () => [] };
const bulk = (options: object = {}, kind: Kind = ConfigMap) =>
  bulkDependent<KubernetesObject, KubernetesObject>(kind, {
    ...list,
    ...options,
  });
const one = (options: object = {}, kind: Kind = ConfigMap) =>
  kubernetesDependent<KubernetesObject, KubernetesObject>(kind, {
    desired: () => ({ metadata: { name: "a" } }),
    ...options,
  });

test("wouldDelete is true of objects of the kind that a bulk does not want", () => {
  const all = bulk();
  assert.ok(wouldDelete(all, one()));
  assert.ok(wouldDelete(all, one({ watch: { labelSelector: "a=b" } })));
  assert.ok(!wouldDelete(all, all));
  assert.ok(!wouldDelete(all, one({}, Secret)));
  const other = { ...ConfigMap, group: "example.com" };
  assert.ok(!wouldDelete(all, one({}, other)));
  assert.ok(!wouldDelete(one(), all));
  assert.ok(!wouldDelete(bulk({ unwanted: "orphan" }), one()));
});

test("wouldDelete compares what a bulk selects, or its source", () => {
  const mapper = byLabel("made-for");
  const references = () => [];
  const selections: readonly object[] = [
    { labelSelector: "a=b" },
    { labelSelector: "a=c" },
    { fieldSelector: "metadata.name=a" },
    { labelSelector: "a=b", namespaces: ["shop"] },
    { labelSelector: "a=b", mapper },
    { mapper },
    { references },
    { labelSelector: "a=b", references },
  ];
  for (const [index, mine] of selections.entries()) {
    for (const [at, theirs] of selections.entries()) {
      assert.equal(
        wouldDelete(bulk({ watch: mine }), one({ watch: { ...theirs } })),
        index === at,
        JSON.stringify([mine, theirs]),
      );
    }
  }
  const source = watch(ConfigMap, { name: "one" });
  const same = bulk({ source });
  assert.ok(wouldDelete(same, one({ source })));
  assert.ok(!wouldDelete(same, one()));
});

test("Dependents of a kind have sources with names of their own", () => {
  const names = [one(), bulk(), one()].map(({ sources }) => sources?.[0]?.name);
  assert.equal(new Set(names).size, 3);
});
