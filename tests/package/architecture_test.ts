import assert from "node:assert/strict";
import { test } from "node:test";
import { importFault } from "./architecture.ts";

test("importFault lets imports run with the arrows", () => {
  const allowed: readonly (readonly [string, string])[] = [
    ["core/api/kind.ts", "./object.ts"],
    ["core/api/kind.ts", "../clock.ts"],
    ["core/client/client.ts", "../config/config.ts"],
    ["apiserver/crd/registry.ts", "../registry.ts"],
    ["apiserver/crd/registry.ts", "../../patch/schema.ts"],
    ["cli/bin.ts", "../apiserver/server.ts"],
    ["core/mod.ts", "./operator/operator.ts"],
    ["core/mod.ts", "./clock.ts"],
    ["core/kinds/mod.ts", "./apps_v1.ts"],
    ["sources/timer_source.ts", "../core/clock.ts"],
    ["workflows/graph/graph.ts", "../../sources/mappers.ts"],
    ["mod.ts", "./sources/mod.ts"],
    ["tests/core/clock_test.ts", "../../core/mod.ts"],
    ["core/client/transport/transport_node.ts", "undici"],
  ];
  for (const [file, specifier] of allowed) {
    assert.equal(importFault(file, specifier), undefined);
  }
});

test("importFault refuses imports against the arrows, and a mod.ts", () => {
  const refused: readonly (readonly [string, string])[] = [
    ["core/clock.ts", "./api/kind.ts"],
    ["core/api/kind.ts", "../client/client.ts"],
    ["core/queue/work_queue.ts", "../patch/json_patch.ts"],
    ["core/operator/operator.ts", "../apiserver/server.ts"],
    ["apiserver/server.ts", "../controller/controller.ts"],
    ["core/kinds/mod.ts", "../client/client.ts"],
    ["core/client/client.ts", "../../sources/timer_source.ts"],
    ["core/client/client.ts", "../api/mod.ts"],
    ["core/client/client.ts", "../cache/informer/informer.ts"],
    ["core/mod.ts", "./apiserver/server.ts"],
    ["sources/timer_source.ts", "../workflows/graph/graph.ts"],
    ["sources/timer_source.ts", "../core/mod.ts"],
    ["mod.ts", "./core/clock.ts"],
    ["core/client/client.ts", "../../tests/support/child_process.ts"],
  ];
  for (const [file, specifier] of refused) {
    assert.match(importFault(file, specifier) ?? "", /^Cannot import /);
  }
});
