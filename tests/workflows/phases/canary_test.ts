import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../../core/controller/context.ts";
import { noUpdate } from "../../../core/controller/result.ts";
import { Canary } from "../../../workflows/phases/canary.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";
import { Gadget, scenario } from "../../support/operator_fixture.ts";

scenario(
  "Canary proves that changes come back as runs, and nothing is done for it [L14]",
  async (fixture) => {
    const reconciled: string[] = [];
    const canary = new Canary(Gadget, {
      client: fixture.client,
      touch: ({ spec }) => ({
        spec: { numberOfExecutions: (spec.numberOfExecutions ?? 0) + 1 },
      }),
      clock: fixture.clock,
    });
    const operator = fixture.operator();
    operator.register(
      Gadget,
      canary.guard({
        reconcile: ({ metadata }) => {
          reconciled.push(metadata.name);
          return noUpdate();
        },
        cleanup() {},
      }),
    );
    await fixture.start(operator);
    await fixture.create("canary", {}, {
      labels: { "coracle.dev/canary": "true" },
    });
    await fixture.create("plain");
    await fixture.until(
      async () =>
        ((await fixture.gadget("canary"))?.metadata.generation ?? 0) >= 3,
      600_000,
    );
    assert.ok(canary.healthy);
    assert.deepEqual(reconciled, ["plain"]);
    assert.equal((await fixture.gadget("canary"))?.status, undefined);

    // Its changes do not come back any more.
    fixture.faults.stallWatches({ resource: "gadgets" });
    await fixture.until(() => !canary.healthy, 600_000);
  },
);

scenario("Canary guards a reconciler that is a class", async (fixture) => {
  class Counting {
    readonly calls: string[] = [];
    initContext() {
      this.calls.push("initContext");
    }
    reconcile() {
      this.calls.push("reconcile");
    }
    cleanup() {
      this.calls.push("cleanup");
    }
  }
  const reconciler = new Counting();
  const canary = new Canary(Gadget, {
    client: fixture.client,
    touch: () => ({}),
    clock: fixture.clock,
  });
  const operator = fixture.operator();
  operator.register(Gadget, canary.guard(reconciler));
  await fixture.start(operator);
  await fixture.create("plain");
  await fixture.until(() => reconciler.calls.length === 2);
  await fixture.client.delete(Gadget, { name: "plain", namespace: "default" });
  await fixture.until(() => reconciler.calls.length === 4);
  assert.deepEqual(reconciler.calls, [
    "initContext",
    "reconcile",
    "initContext",
    "cleanup",
  ]);
});

scenario(
  "A canary whose label is removed is an object like others, and no failure",
  async (fixture) => {
    const reconciled: string[] = [];
    const canary = new Canary(Gadget, {
      client: fixture.client,
      touch: ({ spec }) => ({
        spec: { numberOfExecutions: (spec.numberOfExecutions ?? 0) + 1 },
      }),
      clock: fixture.clock,
    });
    const operator = fixture.operator();
    operator.register(
      Gadget,
      canary.guard({
        reconcile: ({ metadata }) => void reconciled.push(metadata.name),
        cleanup() {},
      }),
    );
    await fixture.start(operator);
    const key = { namespace: "default", name: "canary" };
    const label = (value: "true" | null) => ({
      metadata: { labels: { "coracle.dev/canary": value as string } },
    });
    await fixture.create("canary", {}, label("true").metadata);
    await fixture.advance(90_000);
    assert.deepEqual(reconciled, []);
    await fixture.client.patch(Gadget, key, label(null));
    await fixture.until(() => reconciled.length > 0, 600_000);
    await fixture.advance(600_000);
    assert.ok(canary.healthy);
  },
);

test("A canary that another replica runs or deletes is healthy here", async () => {
  const clock = new VirtualClock();
  const make = (generation: number): Gadget => ({
    metadata: {
      name: "canary",
      uid: "1",
      generation,
      labels: { "coracle.dev/canary": "true" },
    },
    spec: { value: "first" },
  });
  const cached = new Map([["canary", make(1)]]);
  const touched = make(2);
  const canary = new Canary(Gadget, {
    client: { patch: () => Promise.resolve(touched as never) },
    touch: () => ({}),
    clock,
  });
  const { reconcile } = canary.guard({ reconcile() {}, cleanup() {} });
  const ctx = { key: { name: "canary" }, primaries: cached };
  const run = () => reconcile(make(1), ctx as unknown as Context<Gadget>);
  await run();
  await clock.advance(60_000);
  await run();
  // Its change does not come back: another replica has taken it over.
  for (let generation = 3; generation < 9; generation++) {
    await clock.advance(59_000);
    cached.set("canary", make(generation));
    assert.ok(canary.healthy);
  }
  await clock.advance(121_000);
  assert.ok(!canary.healthy, "nobody changes it");
  cached.clear();
  assert.ok(canary.healthy);
});

test("Canary refuses a reconciler without a cleanup", () => {
  const canary = new Canary(Gadget, {
    client: { patch: () => Promise.reject(new Error()) },
    touch: () => ({}),
  });
  assert.throws(() => canary.guard({ reconcile() {} }), TypeError);
});
