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
    ["core/mod.ts", "./client/mod.ts"],
    ["core/client/mod.ts", "../cache/informer/informer.ts"],
    ["core/internal.ts", "./operator/lease_lock.ts"],
    ["mod.ts", "./sources/timer_source.ts"],
    ["mod.ts", "./workflows/graph/graph.ts"],
    ["dev/apiserver/crd/registry.ts", "../registry.ts"],
    ["dev/apiserver/crd/registry.ts", "@coracle/operator/internal"],
    ["dev/apiserver/crd/registry.ts", "@coracle/operator/kinds"],
    ["dev/testing/test_cluster.ts", "../apiserver/server.ts"],
    ["dev/testing/test_cluster.ts", "@coracle/operator"],
    ["dev/cli/bin.ts", "../apiserver/server.ts"],
    ["dev/cli/crd.ts", "@coracle/operator/core"],
    ["dev/mod.ts", "./testing/test_cluster.ts"],
    ["dev/mod.ts", "@coracle/operator/kinds"],
    ["tests/core/clock_test.ts", "@coracle/dev"],
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
    ["core/operator/operator.ts", "../../dev/apiserver/server.ts"],
    ["core/operator/operator.ts", "@coracle/dev/apiserver"],
    ["core/operator/operator.ts", "@coracle/operator/client"],
    ["core/mod.ts", "@coracle/dev"],
    ["core/client/mod.ts", "../operator/operator.ts"],
    ["dev/apiserver/server.ts", "../../core/client/client.ts"],
    ["dev/apiserver/server.ts", "@coracle/operator"],
    ["dev/apiserver/server.ts", "@coracle/operator/core"],
    ["dev/apiserver/server.ts", "../testing/test_cluster.ts"],
    ["dev/testing/test_cluster.ts", "../../core/controller/controller.ts"],
    ["dev/testing/test_cluster.ts", "../cli/bin.ts"],
    ["dev/cli/bin.ts", "../../core/operator/operator.ts"],
    ["dev/mod.ts", "../mod.ts"],
    ["sources/timer_source.ts", "../workflows/graph/graph.ts"],
    ["sources/timer_source.ts", "../core/mod.ts"],
    ["workflows/graph/graph.ts", "../../dev/testing/test_cluster.ts"],
    ["workflows/graph/graph.ts", "@coracle/dev"],
    ["mod.ts", "./dev/apiserver/server.ts"],
    ["mod.ts", "@coracle/dev"],
  ];
  for (const [file, specifier] of refused) {
    assert.match(importFault(file, specifier) ?? "", /^Cannot import /);
  }
});
