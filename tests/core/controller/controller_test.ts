import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster, VirtualClock } from "@coracle/dev";
import {
  type ControllerHandle,
  Operator,
  untyped,
} from "@coracle/operator/core";
import { ConfigMap, Node, type ResolvedKind } from "@coracle/operator/kinds";
import {
  Controller,
  type ControllerDeps,
} from "../../../core/controller/controller.ts";

test("Controller that is stopped during its start opens nothing afterwards", async () => {
  const kind: ResolvedKind = {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: "Namespaced",
  };
  const resolved = Promise.withResolvers<ResolvedKind>();
  const controller = new Controller(kind, { reconcile() {} });
  // Any use of the other dependencies would throw.
  const deps = { client: { resolve: () => resolved.promise } };
  const starting = controller.start(deps as unknown as ControllerDeps);
  await controller.stop();
  resolved.resolve(kind);
  await assert.rejects(starting, /^Error: Cannot start .*: it was stopped$/);
  assert.equal(controller.health().ready, false);
});

test("Controller refuses to trigger a key that none of its primaries can have", () => {
  const reconciler = { reconcile() {} };
  assert.throws(
    () => new Controller(ConfigMap, reconciler).trigger("a"),
    /Cannot trigger a run: the key of a ConfigMap is "namespace\/name": received "a"/,
  );
  assert.throws(
    () =>
      new Controller(Node, reconciler).trigger({ namespace: "b", name: "a" }),
    /the key of a Node is "name": received "b\/a"/,
  );
  for (const key of ["", "a/b/c", "a/", "/a"]) {
    assert.throws(() => new Controller(ConfigMap, reconciler).trigger(key));
    assert.throws(() => new Controller(Node, reconciler).trigger(key));
  }
  new Controller(Node, reconciler).trigger("a");
});

test("Controller of a cluster-scoped kind keeps its objects in other namespaces", async () => {
  // Only the server says its scope.
  const kind = untyped({ group: "", version: "v1", kind: "Node" });
  const registered = Promise.withResolvers<ControllerHandle>();
  const cluster = await TestCluster.start({
    clock: new VirtualClock(),
    objects: [{ apiVersion: "v1", kind: "Node", metadata: { name: "one" } }],
    operator(options) {
      const operator = new Operator(options);
      registered.resolve(operator.register(kind, { reconcile() {} }));
      return operator;
    },
  });
  try {
    const handle = await registered.promise;
    assert.ok(handle.primaries.has("one"));
    await cluster.complete(handle.changeNamespaces(["other"]));
    assert.ok(handle.primaries.has("one"));
  } finally {
    await cluster.stop();
  }
});
