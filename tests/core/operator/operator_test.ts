import assert from "node:assert/strict";
import process from "node:process";
import { Operator } from "../../../core/operator/operator.ts";
import { setDevelopment } from "../../../core/operator/development.ts";
import { silentLogger } from "../../../core/logger.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../../support/operator_fixture.ts";

const idle = { reconcile() {} };
const probes = { port: 0, host: "127.0.0.1" };

/** Number of lines about an operator that has stopped. */
function stopsOf({ log }: OperatorFixture): number {
  return log.filter(({ message }) => message === "Operator stopped").length;
}

scenario(
  "A stop ends the probes last, and a measurement of the event loop",
  async (fixture) => {
    const held = Promise.withResolvers<void>();
    let isHeld = false;
    const client = fixture.client.with([(next) => async (request) => {
      if (isHeld && request.path.includes("/leases")) await held.promise;
      return await next(request);
    }]);
    const operator = fixture.operator({
      client,
      probes,
      leaderElection: { name: "lock", namespace: "default" },
    });
    operator.register(Gadget, idle);
    await fixture.start(operator);
    await fixture.until(() => operator.health().leading);
    isHeld = true;
    const timers = fixture.clock.pendingTimers;
    operator.inspect();
    assert.equal(fixture.clock.pendingTimers, timers + 1);
    const stopped = Promise.all([operator.stop(), operator.stop()]);
    await fixture.settle();
    const health = operator.health();
    assert.deepEqual([health.ready, health.leading], [false, false]);
    assert.ok(operator.probePort, "a stop that takes time is still observed");
    held.resolve();
    await stopped;
    assert.equal(operator.probePort, undefined);
    assert.equal(operator.health().leader, undefined);
    assert.equal(fixture.clock.pendingTimers, 0);
    assert.equal(stopsOf(fixture), 1);
  },
);

scenario(
  "A stop waits for a start in progress, and closes what it has opened",
  async (fixture) => {
    const operator = fixture.operator({ probes });
    operator.register(Gadget, idle);
    const started = assert.rejects(operator.start(), /it was stopped/);
    await operator.stop();
    await started;
    assert.equal(operator.probePort, undefined);
    assert.equal(fixture.requests.length, 0);
  },
);

scenario(
  "A tool is not asked about the start of an operator that was stopped",
  async (fixture) => {
    let asked = 0;
    setDevelopment({
      runs: true,
      logger: silentLogger,
      operatorMade() {},
      operatorStarting: () => Promise.resolve(void asked++),
    });
    try {
      const operator = fixture.operator({ probes });
      operator.register(Gadget, idle);
      const started = assert.rejects(operator.start(), /it was stopped/);
      await operator.stop();
      await started;
      assert.equal(asked, 0);
      await fixture.start(operator);
      assert.equal(asked, 1);
    } finally {
      setDevelopment(undefined);
    }
  },
);

scenario(
  "A stop is logged, except that of a start that failed",
  async (fixture) => {
    const operator = fixture.operator();
    await assert.rejects(operator.start(), /it has no controller/);
    assert.equal(stopsOf(fixture), 0);
    operator.register(Gadget, idle);
    await fixture.start(operator);
    assert.ok(operator.health().leading);
    const stopped = operator.stop();
    assert.equal(operator.health().leading, false, "as soon as it stops");
    await fixture.done(stopped);
    assert.equal(stopsOf(fixture), 1);
  },
);

scenario(
  "A run that is stopped while it starts ends without an error",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, idle);
    const done = operator.run();
    await fixture.done(operator.stop());
    await fixture.done(done);
    assert.equal(stopsOf(fixture), 1);
    const starting = operator.start();
    const refused = assert.rejects(starting, /it was stopped/);
    await fixture.done(operator.stop());
    await refused;
    await fixture.start(operator);
    await fixture.done(operator.stop());
  },
);

scenario(
  "A run leaves no listener of signals and no log of requests behind",
  async (fixture) => {
    const listeners = () =>
      process.eventNames().map((name) => [
        name,
        process.listenerCount(name as "SIGTERM"),
      ]).toSorted();
    const before = listeners();
    const operator = fixture.operator();
    operator.register(Gadget, idle);
    for (let round = 0; round < 2; round++) {
      const done = operator.run();
      await fixture.until(() => operator.health().ready);
      assert.notDeepEqual(listeners(), before);
      await fixture.done(operator.stop());
      await fixture.done(done);
      assert.deepEqual(listeners(), before);
    }
    assert.equal(new Operator().health().ready, false, "it was not started");
  },
);
