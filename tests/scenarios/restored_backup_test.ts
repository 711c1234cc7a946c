import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator, silentLogger } from "@coracle/operator/core";
import { watch } from "@coracle/operator/sources";
import { Widget } from "../support/fake_watch_call.ts";
import { FakeWatchServer } from "../support/fake_watch_server.ts";
import { until } from "../support/until.ts";

test("A spec of a restored backup runs, though its generation was known before", async () => {
  const server = await FakeWatchServer.start();
  const seen = new Map<string, number>();
  const operator = new Operator({
    client: await server.client(),
    logger: silentLogger,
  });
  operator.register(Widget, {
    reconcile({ metadata, spec }) {
      seen.set(metadata.name, spec.size);
    },
  });
  const wasSeen = (sizes: Record<string, number>) =>
    until(
      `the reconciler saw ${JSON.stringify(sizes)}`,
      () =>
        JSON.stringify(Object.fromEntries([...seen].sort())) ===
          JSON.stringify(sizes),
    );
  try {
    server.put("default/a", { size: 1 });
    server.put("default/b", { size: 1 });
    server.put("default/c", { size: 1 });
    const restore = server.backUp();
    await operator.start();
    server.put("default/a", { size: 2 });
    server.put("default/b", { size: 2 });
    server.put("default/c", { size: 2 });
    await wasSeen({ a: 2, b: 2, c: 2 });
    const known = server.get("default/a")?.metadata;
    // While nothing is watched, the backup is restored and "a" is changed.
    restore();
    const { metadata } = server.put("default/a", { size: 3 });
    assert.equal(metadata.generation, known?.generation);
    assert.equal(metadata.resourceVersion, known?.resourceVersion);
    server.endWatches("reset");
    await wasSeen({ a: 3, b: 1, c: 1 });
    assert.equal(operator.health().healthy, true);
  } finally {
    await operator.stop();
    await server.stop();
  }
});

test("A relist forgets what was kept about secondaries of a restored backup", async () => {
  const server = await FakeWatchServer.start();
  const source = watch<Widget, Widget>(Widget, { name: "secondaries" });
  const gone: (string | undefined)[] = [];
  source.onGone((key) => gone.push(key));
  const operator = new Operator({
    client: await server.client(),
    logger: silentLogger,
  });
  operator.register(Widget, { reconcile() {} }, { sources: [source] });
  try {
    server.put("default/a", { size: 1 });
    server.put("default/b", { size: 1 });
    const restore = server.backUp();
    await operator.start();
    server.put("default/a", { size: 2 });
    server.put("default/b", { size: 2 });
    const size = () => operator.health().controllers[0]?.informers.length;
    assert.equal(size(), 1);
    await until(
      "the change was seen",
      async () =>
        (await source.get?.({ namespace: "default", name: "b" }))?.spec.size ===
          2,
    );
    assert.deepEqual(gone, []);
    restore();
    server.put("default/a", { size: 3 });
    server.endWatches("reset");
    await until("both were forgotten", () => gone.length >= 2);
    assert.deepEqual([...new Set(gone)].sort(), ["default/a", "default/b"]);
  } finally {
    await operator.stop();
    await server.stop();
  }
});
