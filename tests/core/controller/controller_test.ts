import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResolvedKind } from "../../../core/api/kind.ts";
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
