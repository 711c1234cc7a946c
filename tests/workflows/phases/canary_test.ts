import assert from "node:assert/strict";
import { test } from "node:test";
import { noUpdate } from "../../../core/controller/result.ts";
import { Canary } from "../../../workflows/phases/canary.ts";
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

test("Canary refuses a reconciler without a cleanup", () => {
  const canary = new Canary(Gadget, {
    client: { patch: () => Promise.reject(new Error()) },
    touch: () => ({}),
  });
  assert.throws(() => canary.guard({ reconcile() {} }), TypeError);
});
