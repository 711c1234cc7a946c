import assert from "node:assert/strict";
import process from "node:process";
import { patchStatus } from "@coracle/operator/core";
import { Event } from "@coracle/operator/kinds";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "Stopping an operator that was never started does nothing [StopWithoutStartIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} });
    await operator.stop();
    assert.equal(operator.health().started, false);
  },
);

scenario(
  "A running reconciler ends within the grace period, and its write arrives [GracefulStopIT]",
  async (fixture) => {
    const operator = fixture.operator({ shutdownGrace: "5s" });
    let begun = 0;
    operator.register(Gadget, {
      async reconcile(gadget) {
        begun++;
        await new Promise<void>((resolve) =>
          fixture.clock.setTimer(resolve, 2_000)
        );
        return patchStatus({
          observedGeneration: gadget.metadata.generation ?? 0,
        });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => begun === 1);
    await fixture.done(operator.stop());
    assert.equal((await fixture.gadget("a"))?.status?.observedGeneration, 1);
    await fixture.change("a", { value: "second" });
    await fixture.advance(10_000);
    assert.equal(begun, 1, "after the stop nothing runs");
  },
);

scenario(
  "A stopped operator can be started again [OperatorRestartIT]",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(gadget.spec.value);
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.done(operator.stop());
    await fixture.change("a", { value: "second" });
    await fixture.start(operator);
    await fixture.until(() => seen.length === 2);
    assert.deepEqual(seen, ["first", "second"]);
  },
);

scenario(
  "An operator that is started while it stops is started once it has stopped",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: ({ spec }) => void seen.push(spec.value),
    });
    await fixture.start(operator);
    const stopped = operator.stop();
    await fixture.start(operator);
    await stopped;
    assert.equal(operator.health().started, true);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
  },
);

scenario(
  "A stop waits until the Events of the last runs are written",
  async (fixture) => {
    const held = Promise.withResolvers<void>();
    let events = 0;
    const client = fixture.client.with([(next) => async (request) => {
      if (!request.path.includes("/events")) return await next(request);
      events++;
      await held.promise;
      return await next(request);
    }]);
    const operator = fixture.operator({ client });
    operator.register(Gadget, {
      reconcile: (_gadget, ctx) => ctx.events.normal("Seen", "As asked"),
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => events === 1);
    let hasStopped = false;
    const stopped = operator.stop().then(() => hasStopped = true);
    await fixture.settle();
    assert.equal(hasStopped, false);
    held.resolve();
    await fixture.done(stopped);
    const { items } = await fixture.client.list(Event, {
      namespace: "default",
    });
    // A real cluster has Events of its own there.
    assert.equal(items.filter(({ reason }) => reason === "Seen").length, 1);
  },
);

scenario(
  "A controller is unregistered once its runs have ended, whose writes arrive",
  async (fixture) => {
    const operator = fixture.operator({ shutdownGrace: "5s" });
    let begun = 0;
    const { name } = operator.register(Gadget, {
      async reconcile() {
        begun++;
        await new Promise<void>((resolve) =>
          fixture.clock.setTimer(resolve, 2_000)
        );
        return patchStatus({ value: "done" });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => begun === 1);
    let hasEnded = false;
    const ended = operator.unregister(name).then(() => hasEnded = true);
    await fixture.settle();
    assert.equal(hasEnded, false);
    await fixture.done(ended);
    assert.equal((await fixture.gadget("a"))?.status?.value, "done");
    assert.equal(begun, 1);
  },
);

scenario(
  "A run that never returns is aborted, logged and abandoned",
  async (fixture) => {
    const operator = fixture.operator({ shutdownGrace: "3s" });
    let signal: AbortSignal | undefined;
    let release = () => {};
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        signal = ctx.signal;
        await new Promise<void>((resolve) => release = resolve);
      },
    });
    await fixture.start(operator);
    await fixture.create("stuck");
    await fixture.until(() => signal !== undefined);
    const before = fixture.clock.now();
    await fixture.done(operator.stop());
    assert.ok(fixture.clock.now() - before >= 3_000);
    assert.equal(signal?.aborted, true);
    assert.match(String(signal?.reason), /the operator stops/);
    const line = fixture.log.find(({ level }) => level === "error");
    assert.match(line?.message ?? "", /left behind/);
    assert.deepEqual(line?.fields["objects"], ["default/stuck"]);
    // A second run of the same object must not begin beside the old one [3.9.1].
    await assert.rejects(
      fixture.start(operator),
      /have not ended.*default\/stuck/,
    );
    release();
    await fixture.settle();
    await fixture.start(operator);
  },
);

scenario(
  "A second signal ends the grace period of this stop, and not of the next one",
  async (fixture) => {
    const operator = fixture.operator({ shutdownGrace: "30s" });
    let signal: AbortSignal | undefined;
    let ended = 0;
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        signal = ctx.signal;
        await new Promise<void>((resolve) => {
          const timer = fixture.clock.setTimer(resolve, 5_000);
          ctx.signal.addEventListener("abort", () => {
            timer.cancel();
            resolve();
          });
        });
        ended++;
      },
    });
    /** Runs the operator until the signals, in the middle of a run. */
    const runUntil = async (signals: number): Promise<void> => {
      const others = process.listeners("SIGTERM");
      const done = operator.run();
      const [listener] = process.listeners("SIGTERM")
        .filter((one) => !others.includes(one));
      await fixture.until(() => operator.health().ready);
      signal = undefined;
      await fixture.change("a", { value: `of ${ended}` });
      await fixture.until(() => signal !== undefined);
      for (let count = 0; count < signals; count++) listener?.("SIGTERM");
      await fixture.done(done);
    };
    await fixture.create("a");
    const before = fixture.clock.now();
    await runUntil(2);
    assert.equal(signal?.aborted, true);
    await runUntil(1);
    assert.equal(
      signal?.aborted,
      false,
      "the run ended within the grace period",
    );
    assert.ok(fixture.clock.now() - before < 30_000);
  },
);
