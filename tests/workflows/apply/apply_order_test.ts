import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectReference } from "@coracle/operator/workflows";
import { fc } from "../../support/property.ts";
import {
  applyStages,
  compareForApply,
} from "../../../workflows/apply/apply_order.ts";

function reference(
  kind: string,
  name = "one",
  apiVersion = "v1",
): ObjectReference {
  return { apiVersion, kind, name };
}

test("What others need is applied before them, and webhooks last", () => {
  const kinds = [
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "ClusterClass",
    "RuntimeClass",
    "PriorityClass",
    "StorageClass",
    "VolumeSnapshotClass",
    "IngressClass",
    "GatewayClass",
    "ClusterRoleBinding",
    "ResourceQuota",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
    "Gadget",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
  ];
  assert.deepEqual(
    kinds.toSorted().map((kind) => reference(kind)).sort(compareForApply)
      .map(({ kind }) => kind),
    kinds,
  );
});

test("Objects of one place are ordered by group, kind, namespace and name", () => {
  const references = [
    reference("Gadget", "b", "a.example.com/v1"),
    reference("Gadget", "a", "b.example.com/v1"),
    reference("Gadget", "a", "a.example.com/v2"),
    reference("Apple", "z", "b.example.com/v1"),
  ];
  assert.deepEqual(
    references.toSorted(compareForApply).map(({ apiVersion, kind, name }) =>
      `${apiVersion} ${kind} ${name}`
    ),
    [
      "a.example.com/v2 Gadget a",
      "a.example.com/v1 Gadget b",
      "b.example.com/v1 Apple z",
      "b.example.com/v1 Gadget a",
    ],
  );
});

test("Stages are definitions, classes, what the caller names, and the rest", () => {
  const stages = applyStages([
    reference("ConfigMap"),
    reference("GatewayClass", "one", "gateway.networking.k8s.io/v1"),
    reference("Tenant", "one", "example.com/v1"),
    reference("ClusterRole"),
    reference("Namespace"),
    reference("CustomResourceDefinition"),
  ], ["example.com/Tenant"]);
  assert.deepEqual(stages.map((stage) => stage.map(({ kind }) => kind)), [
    ["CustomResourceDefinition", "Namespace", "ClusterRole"],
    ["GatewayClass"],
    ["Tenant"],
    ["ConfigMap"],
  ]);
  assert.deepEqual(applyStages([]), []);
});

test("The order of applying does not depend on the order of the input", () => {
  const kind = fc.constantFrom(
    "Namespace",
    "Secret",
    "Gadget",
    "Apple",
    "Service",
  );
  const any = fc.uniqueArray(
    fc.record({
      apiVersion: fc.constantFrom("v1", "a/v1", "b/v1"),
      kind,
      name: fc.constantFrom("x", "y", "z"),
    }),
    { selector: (one) => JSON.stringify(one) },
  );
  fc.assert(
    fc.property(any, (references) => {
      const sorted = references.toSorted(compareForApply);
      assert.deepEqual(references.toReversed().sort(compareForApply), sorted);
    }),
  );
});

test("Objects of one kind are ordered by their namespaces before their names", () => {
  const of = (namespace: string | undefined, name: string) => ({
    ...reference("Gadget", name, "a.example.com/v1"),
    namespace,
  });
  const ordered = [of(undefined, "z"), of("a", "y"), of("b", "x")];
  assert.deepEqual(ordered.toReversed().sort(compareForApply), ordered);
});
