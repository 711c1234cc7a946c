import assert from "node:assert/strict";
import { test } from "node:test";
import { importFault } from "./architecture.ts";

test("importFault allows imports in the direction of the arrows", () => {
  const allowed: readonly (readonly [string, string])[] = [
    ["core/api/kind.ts", "./object.ts"],
    ["core/api/kind.ts", "../clock.ts"],
    ["core/client/client.ts", "../config/config.ts"],
    ["core/cache/informer/informer.ts", "../../client/client.ts"],
    ["core/cache/informer/informer.ts", "../store/object_store.ts"],
    ["core/mod.ts", "./operator/operator.ts"],
    ["core/mod.ts", "./clock.ts"],
    ["core/kinds/mod.ts", "./apps_v1.ts"],
    ["sources/timer_source.ts", "../core/clock.ts"],
    ["workflows/graph/graph.ts", "../../sources/timer_source.ts"],
    ["apiserver/crd/registry.ts", "../registry.ts"],
    ["apiserver/crd/registry.ts", "../../core/patch/schema.ts"],
    ["testing/test_cluster.ts", "../apiserver/server.ts"],
    ["cli/bin.ts", "../apiserver/server.ts"],
    ["cli/crd.ts", "../core/kinds/mod.ts"],
    ["mod.ts", "./sources/mod.ts"],
    ["mod.ts", "./workflows/graph/graph.ts"],
    ["tests/core/clock_test.ts", "../../core/mod.ts"],
    ["core/client/web_socket.ts", "ws"],
  ];
  for (const [file, specifier] of allowed) {
    assert.equal(importFault(file, specifier), undefined);
  }
});

test("importFault refuses imports against the arrows and imports of a mod.ts", () => {
  const refused: readonly (readonly [string, string])[] = [
    ["core/clock.ts", "./api/kind.ts"],
    ["core/api/kind.ts", "../client/client.ts"],
    ["core/queue/work_queue.ts", "../patch/json_patch.ts"],
    ["core/client/client.ts", "../cache/informer/informer.ts"],
    ["core/client/client.ts", "../../sources/timer_source.ts"],
    ["core/client/client.ts", "../api/mod.ts"],
    ["core/client/client.ts", "../../tests/support/child_process.ts"],
    ["core/kinds/mod.ts", "../client/client.ts"],
    ["core/operator/operator.ts", "../../apiserver/server.ts"],
    ["core/mod.ts", "../apiserver/server.ts"],
    ["apiserver/server.ts", "../core/controller/controller.ts"],
    ["apiserver/server.ts", "../core/cache/informer/informer.ts"],
    ["apiserver/server.ts", "../core/queue/scheduling_queue.ts"],
    ["testing/test_cluster.ts", "../core/controller/controller.ts"],
    ["testing/test_cluster.ts", "../cli/bin.ts"],
    ["sources/timer_source.ts", "../workflows/graph/graph.ts"],
    ["sources/timer_source.ts", "../core/mod.ts"],
    ["workflows/graph/graph.ts", "../../testing/test_cluster.ts"],
    ["mod.ts", "./apiserver/server.ts"],
    ["mod.ts", "./cli/bin.ts"],
  ];
  for (const [file, specifier] of refused) {
    assert.match(importFault(file, specifier) ?? "", /^Cannot import /);
  }
});
