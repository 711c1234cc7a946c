import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { TestCluster, VirtualClock } from "@coracle/dev";
import { Operator, untyped, type UntypedObject } from "@coracle/operator/core";
import { crdManifest, defineKind } from "@coracle/operator/crd";
import {
  ConfigMap,
  CustomResourceDefinition as Crd,
  type KubernetesObject,
} from "@coracle/operator/kinds";

const Cell = defineKind({
  group: "kais.io",
  version: "v1",
  kind: "Cell",
  spec: z.object({ size: z.int() }),
});
const crd = crdManifest(Cell) as object as KubernetesObject as UntypedObject;

for (const clock of [undefined, new VirtualClock()]) {
  const time = clock === undefined ? "real" : "virtual";
  test(`Definitions among the objects of a cluster in ${time} time are served`, async () => {
    const seen: string[] = [];
    const cluster = await TestCluster.start({
      clock,
      objects: [crd, {
        apiVersion: "kais.io/v1",
        kind: "Cell",
        metadata: { name: "a" },
        spec: { size: 1 },
      }],
      operator: (options) => {
        const operator = new Operator(options);
        operator.register(
          untyped({ group: "kais.io", version: "v1", kind: "Cell" }),
          { reconcile: ({ metadata }) => void seen.push(metadata.name) },
        );
        return operator;
      },
    });
    try {
      await cluster.until(() => seen.length > 0);
      assert.deepEqual(seen, ["a"]);
      const stored = await cluster.apply(crd);
      assert.equal(stored.metadata.name, "cells.kais.io");
    } finally {
      await cluster.stop();
    }
  });
}

test("A definition that a test with a virtual clock applies is served", async () => {
  const cluster = await TestCluster.start({ clock: new VirtualClock() });
  try {
    const stored = await cluster.apply(crd);
    assert.equal(stored.metadata.name, "cells.kais.io");
    const cell = { apiVersion: "kais.io/v1", kind: "Cell", spec: { size: 1 } };
    await cluster.apply({ ...cell, metadata: { name: "a" } });
    await cluster.complete(cluster.client.delete(Crd, stored.metadata));
    await cluster.complete(cluster.apply(crd));
  } finally {
    await cluster.stop();
  }
});

test("An object is applied in its namespace, or else in that of the test", async () => {
  const map = { apiVersion: "v1", kind: "ConfigMap" };
  const cluster = await TestCluster.start({
    objects: [{ ...map, metadata: { name: "a", namespace: "kube-system" } }],
  });
  try {
    const { client, namespace } = cluster;
    const other = await cluster.apply({
      ...map,
      metadata: { name: "b", namespace: "kube-system" },
    });
    assert.equal(other.metadata.namespace, "kube-system");
    const own = await cluster.apply({ ...map, metadata: { name: "b" } });
    assert.equal(own.metadata.namespace, namespace);
    await client.get(ConfigMap, { namespace: "kube-system", name: "a" });
  } finally {
    await cluster.stop();
  }
});
