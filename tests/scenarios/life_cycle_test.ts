import assert from "node:assert/strict";
import {
  keepFinalizer,
  noUpdate,
  patchStatus,
} from "../../core/controller/result.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
import { Gadget, scenario } from "../support/operator_case.ts";

scenario(
  "An operator makes what an object asks for, reports, ignores labels and cleans up [ReconcilerExecutorIT]",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        seen.push(gadget.spec.value);
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: { value: gadget.spec.value },
        });
        return patchStatus({ value: gadget.spec.value });
      },
      cleanup() {
        seen.push("cleanup");
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "first"
    );
    const key = { namespace: "default", name: "a" };
    assert.deepEqual((await one.client.get(ConfigMap, key)).data, {
      value: "first",
    });
    await one.mark("a", { labels: { color: "blue" } });
    await one.advance(10_000);
    assert.deepEqual(seen, ["first"]);
    await one.remove("a");
    await one.until(async () => await one.gadget("a") === undefined);
    assert.deepEqual(seen, ["first", "cleanup"]);
    await one.until(async () =>
      await one.client.find(ConfigMap, key) === undefined
    );
  },
);

scenario(
  "Cleanup may keep the finalizer and come back until it is done [CleanerForReconcilerIT]",
  async (one) => {
    let runs = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile: () => noUpdate(),
      cleanup() {
        runs++;
        if (runs < 3) return keepFinalizer().rescheduleAfter("1s");
        return undefined;
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.metadata.finalizers?.length === 1
    );
    await one.remove("a");
    await one.advance(1_500);
    assert.equal(runs, 2);
    assert.ok(await one.gadget("a"));
    await one.advance(1_000);
    assert.equal(runs, 3);
    assert.equal(await one.gadget("a"), undefined);
  },
);
