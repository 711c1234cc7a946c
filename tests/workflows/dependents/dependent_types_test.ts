import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineKind } from "@coracle/operator/crd";
import {
  ConfigMap,
  Deployment,
  type Namespace,
  NetworkPolicy,
  RoleBinding,
} from "@coracle/operator/kinds";
import {
  bulkDependent,
  type KubernetesDependent,
  kubernetesDependent,
  Workflow,
} from "@coracle/operator/workflows";

const metadata = { name: "a" };
const template = { spec: { containers: [{ name: "web" }] } };

test("The types of a dependent demand the fields that a server requires", () => {
  kubernetesDependent(Deployment, {
    desired: () => ({ metadata, spec: { selector: {}, template } }),
  });
  kubernetesDependent(Deployment, {
    // @ts-expect-error -- without selector
    desired: () => ({ metadata, spec: { template } }),
  });
  kubernetesDependent(RoleBinding, {
    // @ts-expect-error -- without roleRef
    desired: () => ({ metadata }),
  });
  const adopted = kubernetesDependent(Deployment, {
    existing: "adopt",
    desired: () => ({ metadata, spec: { replicas: 3 } }),
  });
  assert.equal(adopted.sources.length, 1);
});

test("The types of a dependent let fields with a default be absent", () => {
  const Crate = defineKind({
    group: "example.com",
    version: "v1",
    kind: "Crate",
    spec: z.object({ label: z.string(), heavy: z.boolean().default(false) }),
  });
  kubernetesDependent(Crate, {
    desired: () => ({ metadata, spec: { label: "x" } }),
  });
  const desired = () => ({ metadata, spec: { heavy: true } });
  // @ts-expect-error -- without label
  const wrong = kubernetesDependent(Crate, { desired });
  assert.equal(wrong.sources.length, 1);
});

test("A bulk dependent takes lists and maps, but no single object", async () => {
  const data = { color: "blue", other: undefined };
  bulkDependent(ConfigMap, { desired: () => [{ metadata, data }] });
  bulkDependent(ConfigMap, { desired: () => new Set([{ metadata, data }]) });
  bulkDependent(ConfigMap, {
    desired: () => Promise.resolve(new Map([["a", { metadata, data }]])),
  });
  const wrong = bulkDependent(ConfigMap, {
    // @ts-expect-error -- one object
    desired: () => ({ metadata }),
  });
  await assert.rejects(
    wrong.reconcile({ metadata }, {} as never),
    /^TypeError: Cannot use the desired objects of a bulk dependent of ConfigMap: they must be a list or a map: received an object$/,
  );
});

test("Values of enums keep their types where a dependent infers its types", () => {
  const spec = { podSelector: {} };
  const one = kubernetesDependent(NetworkPolicy, {
    desired: ({ metadata: { name } }: Namespace) => ({
      metadata: { name },
      spec: { ...spec, policyTypes: ["Ingress"] },
    }),
  });
  const adopted = kubernetesDependent(NetworkPolicy, {
    existing: "adopt",
    desired: (_: Namespace) =>
      Promise.resolve({ metadata, spec: { policyTypes: ["Egress"] } }),
  });
  const many = bulkDependent(NetworkPolicy, {
    desired: (_: Namespace) => [
      { metadata, spec: { ...spec, policyTypes: ["Ingress"] } },
    ],
  });
  kubernetesDependent(NetworkPolicy, {
    // @ts-expect-error -- no such type
    desired: () => ({ metadata, spec: { ...spec, policyTypes: ["Ingres"] } }),
  });
  const primaries: readonly [
    PrimaryOf<typeof one>,
    PrimaryOf<typeof adopted>,
    PrimaryOf<typeof many>,
  ] = ["Namespace", "Namespace", "Namespace"];
  assert.equal(primaries.length, 3);
  new Workflow<Namespace>().add(
    "inferred",
    kubernetesDependent(NetworkPolicy, {
      desired: ({ spec: namespace }) => ({
        metadata: {
          ...metadata,
          labels: { a: namespace?.finalizers?.[0] ?? "" },
        },
        spec: { ...spec, policyTypes: ["Ingress"] },
      }),
    }),
  );
});

/** `"Namespace"` if a dependent has inferred that as its primary. */
type PrimaryOf<D> = D extends KubernetesDependent<infer P, infer _>
  ? P extends Namespace ? Namespace extends P ? "Namespace" : never : never
  : never;
