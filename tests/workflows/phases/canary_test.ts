import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type Context, noUpdate } from "@coracle/operator/core";
import { Canary } from "@coracle/operator/workflows";
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

    // Its changes do not come back any more, not by another watch or list either.
    fixture.faults.add({
      resource: "gadgets",
      verb: ["list", "watch"],
      effect: { status: 503 },
    });
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
      if (this.calls.length === 2) throw new Error("As asked");
    }
    onError() {
      this.calls.push("onError");
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
  await fixture.until(() => reconciler.calls.length === 5);
  await fixture.client.delete(Gadget, { name: "plain", namespace: "default" });
  await fixture.until(() => reconciler.calls.length === 7);
  assert.deepEqual(reconciler.calls, [
    "initContext",
    "reconcile",
    "onError",
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

const MINUTE = 60_000;

/**
 * A guarded canary of generation 1 that is patched every ten minutes, and whose
 * patch must come back within one.
 */
function guarded() {
  const clock = new VirtualClock();
  const make = (generation: number, label = "true"): Gadget => ({
    metadata: {
      name: "canary",
      uid: "1",
      generation,
      labels: { "coracle.dev/canary": label },
    },
    spec: { value: "first" },
  });
  const cached = new Map([["canary", make(1)]]);
  /** Generations that patches lead to. */
  const patched: number[] = [];
  const calls: string[] = [];
  const canary = new Canary(Gadget, {
    client: {
      patch(kind, key, body) {
        calls.push(`patch ${kind.kind} ${key.name} ${JSON.stringify(body)}`);
        return Promise.resolve(make(patched.shift() ?? 2) as never);
      },
    },
    touch: ({ metadata }) => ({ spec: { value: `${metadata.generation}` } }),
    every: "10m",
    within: "1m",
    clock,
  });
  const { reconcile, cleanup } = canary.guard({
    reconcile: () => void calls.push("reconcile"),
    cleanup: () => void calls.push("cleanup"),
  });
  const ctx = {
    key: { name: "canary" },
    primaries: cached,
  } as unknown as Context<Gadget>;
  return {
    canary,
    clock,
    cached,
    patched,
    calls,
    make,
    /** Delay of the next run, after a run with an object. */
    run: async (object: Gadget) => (await reconcile(object, ctx))?.delay,
    cleanup: async (object: Gadget) => void await cleanup?.(object, ctx),
    /** Asserts that the canary is unhealthy from a number of milliseconds on. */
    async failsIn(milliseconds: number) {
      await clock.advance(milliseconds);
      assert.ok(canary.healthy, "it is in time");
      await clock.advance(1);
      assert.ok(!canary.healthy, "it is late");
    },
  };
}

test("A canary is patched at its interval, and must be seen again in time", async () => {
  const { canary, clock, cached, calls, make, run, failsIn } = guarded();
  assert.ok(canary.healthy, "there is none");
  assert.equal(await run(make(1)), 10 * MINUTE);
  await clock.advance(4 * MINUTE);
  assert.equal(await run(make(1)), 6 * MINUTE);
  assert.deepEqual(calls, []);
  await clock.advance(6 * MINUTE);
  assert.equal(await run(make(1)), MINUTE);
  assert.deepEqual(calls, ['patch Gadget canary {"spec":{"value":"1"}}']);
  await clock.advance(MINUTE / 2);
  assert.equal(await run(make(1)), MINUTE, "the patch has not come back");
  await clock.advance(MINUTE / 2 - 1);
  assert.ok(canary.healthy);
  assert.equal(await run(make(2)), 10 * MINUTE);
  cached.set("canary", make(2));
  await failsIn(11 * MINUTE);
  assert.equal(calls.length, 1);
});

test("A canary whose patch comes without a run is unhealthy", async () => {
  const { clock, cached, make, run, failsIn } = guarded();
  await run(make(1));
  await clock.advance(10 * MINUTE);
  await run(make(1));
  cached.set("canary", make(2));
  await failsIn(MINUTE);
});

test("A canary that others change is seen with its patch or after it", async () => {
  const { clock, cached, patched, make, run, failsIn } = guarded();
  await run(make(1));
  await clock.advance(MINUTE);
  cached.set("canary", make(2));
  await run(make(2));
  await clock.advance(9 * MINUTE);
  patched.push(5);
  await run(make(2));
  assert.equal(await run(make(4)), MINUTE, "from before the patch");
  assert.equal(await run(make(6)), 10 * MINUTE, "from after the patch");
  cached.set("canary", make(6));
  await failsIn(11 * MINUTE);
});

test("A canary that others change has the same time for its next patch", async () => {
  const { clock, cached, make, run, failsIn } = guarded();
  await run(make(1));
  await clock.advance(MINUTE);
  cached.set("canary", make(2));
  await run(make(2));
  await failsIn(10 * MINUTE);
});

test("A canary that another replica runs or deletes is healthy here", async () => {
  const { canary, clock, cached, make, run, failsIn } = guarded();
  await run(make(1));
  await clock.advance(10 * MINUTE);
  await run(make(1));
  // Its change does not come back: another replica has taken it over.
  for (let generation = 3; generation < 9; generation++) {
    await clock.advance(MINUTE - 1);
    cached.set("canary", make(generation));
    assert.ok(canary.healthy);
  }
  await failsIn(11 * MINUTE);
  cached.clear();
  assert.ok(canary.healthy);
});

test("A canary is one by the value of its label, and is not cleaned up", async () => {
  const { canary, clock, cached, calls, make, run, cleanup } = guarded();
  await run(make(1));
  await cleanup(make(1));
  await clock.advance(60 * MINUTE);
  assert.ok(canary.healthy, "it is deleted");
  await run(make(1));
  cached.set("canary", make(1, "false"));
  await clock.advance(60 * MINUTE);
  assert.ok(canary.healthy, "its label has changed");
  assert.deepEqual(calls, []);
  await run(make(1, "false"));
  await cleanup(make(1, "false"));
  assert.deepEqual(calls, ["reconcile", "cleanup"]);
});

test("Canary refuses a patch that changes nothing, and shows it", async () => {
  const { clock, patched, make, run } = guarded();
  await run(make(1));
  await clock.advance(10 * MINUTE);
  patched.push(1);
  await assert.rejects(run(make(1)), {
    name: "RangeError",
    message:
      'Cannot wait for a canary: "touch" must change its spec: received {"spec":{"value":"1"}}',
  });
});

test("Canary refuses a reconciler without a cleanup", () => {
  const canary = new Canary(Gadget, {
    client: { patch: () => Promise.reject(new Error()) },
    touch: () => ({}),
  });
  assert.throws(() => canary.guard({ reconcile() {} }), TypeError);
});

test("A canary that loses its label is forgotten before the cache shows it", async () => {
  const { canary, clock, calls, make, run } = guarded();
  await run(make(1));
  await run(make(1, "false"));
  await clock.advance(60 * MINUTE);
  assert.ok(canary.healthy);
  assert.deepEqual(calls, ["reconcile"]);
});

test("A canary of which the cache has only the key must have its run, too", async () => {
  const { clock, cached, make, run, failsIn } = guarded();
  await run(make(1));
  await clock.advance(10 * MINUTE);
  await run(make(1));
  cached.set("canary", undefined as never);
  await failsIn(MINUTE);
});
