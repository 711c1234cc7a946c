import assert from "node:assert/strict";
import { patchStatus } from "../../core/controller/result.ts";
import { Gadget, scenario } from "../support/operator_case.ts";

scenario(
  "Stopping an operator that was never started does nothing [StopWithoutStartIT]",
  async (one) => {
    const operator = one.operator();
    operator.register(Gadget, { reconcile() {} });
    await operator.stop();
    assert.equal(operator.health().started, false);
  },
);

scenario(
  "A run that is under way at the stop ends within the grace, and its write arrives [GracefulStopIT]",
  async (one) => {
    const operator = one.operator({ shutdownGrace: "5s" });
    let begun = 0;
    operator.register(Gadget, {
      async reconcile(gadget) {
        begun++;
        await new Promise<void>((resolve) =>
          one.clock.setTimer(resolve, 2_000)
        );
        return patchStatus({
          observedGeneration: gadget.metadata.generation ?? 0,
        });
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => begun === 1);
    await one.done(operator.stop());
    assert.equal((await one.gadget("a"))?.status?.observedGeneration, 1);
    await one.change("a", { value: "second" });
    await one.advance(10_000);
    assert.equal(begun, 1, "after the stop nothing runs");
  },
);

scenario(
  "An operator that was stopped can be started again [OperatorRestartIT]",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(gadget.spec.value);
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    await one.done(operator.stop());
    await one.change("a", { value: "second" });
    await one.start(operator);
    await one.until(() => seen.length === 2);
    assert.deepEqual(seen, ["first", "second"]);
  },
);

scenario(
  "A run that never returns is asked to end, named in the log and left behind",
  async (one) => {
    const operator = one.operator({ shutdownGrace: "3s" });
    let signal: AbortSignal | undefined;
    let release = () => {};
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        signal = ctx.signal;
        await new Promise<void>((resolve) => release = resolve);
      },
    });
    await one.start(operator);
    await one.create("stuck");
    await one.until(() => signal !== undefined);
    const before = one.clock.now();
    await one.done(operator.stop());
    assert.ok(one.clock.now() - before >= 3_000);
    assert.equal(signal?.aborted, true);
    assert.match(String(signal?.reason), /the operator stops/);
    const line = one.log.find(({ level }) => level === "error");
    assert.match(line?.message ?? "", /left behind/);
    assert.deepEqual(line?.fields["objects"], ["default/stuck"]);
    // A second run of the same object must not begin beside the old one [3.9.1].
    await assert.rejects(one.start(operator), /have not ended.*default\/stuck/);
    release();
    await one.settle();
    await one.start(operator);
  },
);
