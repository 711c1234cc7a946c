import assert from "node:assert/strict";
import process from "node:process";
import { z } from "zod";
import type { Client } from "@coracle/operator/client";
import { untyped } from "../../../core/api/kind.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";
import { validatingPolicy } from "../../../core/crd/policies.ts";
import { watch } from "../../../core/controller/watch/watch_source.ts";
import { ConfigMap, Secret } from "../../../core/kinds/core_v1.ts";
import { Operator } from "../../../core/operator/operator.ts";
import { replaceHost } from "../../../core/client/host.ts";
import { silentLogger } from "../../../core/logger.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../../support/operator_fixture.ts";
import { RecordedTracer } from "../../support/recorded_tracer.ts";

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
  "A controller that is registered while the webhooks are registered starts",
  async (fixture) => {
    const registering = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const client = fixture.client.with([(next) => async (request) => {
      if (request.path.includes("/validatingadmissionpolicies")) {
        registering.resolve();
        await held.promise;
      }
      return await next(request);
    }]);
    const operator = fixture.operator({ client });
    operator.register(Gadget, idle);
    operator.admit(validatingPolicy(ConfigMap, {
      name: "late.example.com",
      operations: ["CREATE"],
      validations: [{ expression: "true", message: "none" }],
    }));
    const started = fixture.start(operator);
    await registering.promise;
    const late = operator.register(Secret, idle);
    held.resolve();
    await started;
    await fixture.until(() => late.health().ready);
  },
);

scenario(
  "A tool is not asked about the start of an operator that was stopped",
  async (fixture) => {
    let asked = 0;
    const restore = replaceHost({
      operators: {
        runs: true,
        logger: silentLogger,
        made() {},
        starting: () => Promise.resolve(void asked++),
      },
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
      restore();
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
    await fixture.done(operator.stop());
    assert.equal(operator.health().leading, false);
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

scenario(
  "An operator refuses a controller whose name is taken, and keeps none it refuses",
  (fixture) => {
    const operator = fixture.operator();
    const cleaning = { ...idle, cleanup() {} };
    operator.register(Gadget, cleaning);
    assert.throws(
      () => operator.register(Gadget, cleaning),
      /the name is taken, .* received "gadget"$/,
    );
    assert.throws(
      () => operator.register(Gadget, cleaning, { name: "other" }),
      /clean up Gadget objects with the finalizer/,
    );
    assert.deepEqual(operator.controllers.map(({ name }) => name), ["gadget"]);
    operator.register(ConfigMap, idle, { install: true, owns: [Gadget] });
    assert.throws(
      () => operator.register(Secret, idle, { install: true }),
      /only a kind of defineKind carries the definition/,
    );
    return Promise.resolve();
  },
);

scenario(
  "A controller that is unregistered is forgotten at once, and ends its run",
  async (fixture) => {
    const run = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    const operator = fixture.operator({ shutdownGrace: "10s" });
    operator.register(Gadget, {
      async reconcile(_gadget, { signal }) {
        signals.push(signal);
        await run.promise;
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => signals.length > 0);
    const removed = operator.unregister("gadget");
    assert.equal(operator.controllerNamed("gadget"), undefined);
    await fixture.advance(9_000);
    assert.equal(signals[0]?.aborted, false);
    run.resolve();
    await fixture.done(removed);
  },
);

scenario(
  "An operator starts once for two calls, and again during its stop",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, idle);
    await fixture.done(Promise.all([operator.start(), operator.start()]));
    const starts = () =>
      fixture.log.filter(({ message }) => message === "Operator started");
    assert.equal(starts().length, 1);
    const stopped = operator.stop();
    await fixture.start(operator);
    await stopped;
    assert.equal(operator.health().ready, true);
    assert.equal(starts().length, 2);
  },
);

scenario(
  "An operator has stopped when its start is rejected, and logs no second stop",
  async (fixture) => {
    const operator = fixture.operator({ probes });
    await assert.rejects(operator.start(), /it has no controller/);
    const { state } = operator.inspect() as { state: string };
    assert.equal(state, "stopped");
    await operator.stop();
    assert.equal(stopsOf(fixture), 0);
  },
);

scenario(
  "A second signal ends the grace period of one stop, and of no later one",
  async (fixture) => {
    const signals: AbortSignal[] = [];
    const operator = fixture.operator({ shutdownGrace: "1h" });
    operator.register(Gadget, {
      reconcile: (_gadget, { signal }) =>
        new Promise((_, reject) => {
          signals.push(signal);
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    await fixture.create("a");
    for (const count of [1, 2]) {
      const done = operator.run();
      await fixture.until(() => signals.length === count);
      process.emit("SIGTERM");
      await fixture.advance(10_000);
      assert.equal(signals.at(-1)?.aborted, false);
      process.emit("SIGTERM");
      await fixture.settle();
      assert.equal(signals.at(-1)?.aborted, true);
      await fixture.done(done);
    }
  },
);

scenario(
  "A stop ends a start that waits for the rights or the caches",
  async (fixture) => {
    const leaderElection = { name: "lock", namespace: "default" };
    const cases = [
      ["/selfsubjectaccessreviews", leaderElection],
      ["/gadgets", undefined],
    ] as const;
    for (const [path, leaderElection] of cases) {
      let isAsked = false;
      const end = Promise.withResolvers<never>();
      end.promise.catch(() => {});
      const client = fixture.client.with([(next) => async (request) => {
        if (!request.path.includes(path)) return await next(request);
        isAsked = true;
        return await end.promise;
      }]);
      const operator = fixture.operator({ client, leaderElection });
      operator.register(Gadget, idle);
      const started = assert.rejects(operator.start(), /it was stopped/);
      await fixture.until(() => isAsked);
      const stopped = operator.stop();
      let isStopped = false;
      void stopped.then(() => isStopped = true);
      await fixture.until(() => isStopped);
      await started;
      end.reject(new Error("It ends"));
    }
  },
);

scenario(
  "A replica on standby is not leading; a leader runs a controller added later",
  async (fixture) => {
    const leaderElection = { name: "lock", namespace: "default" };
    const [first, second] = [0, 1].map(() => {
      const operator = fixture.operator({ leaderElection });
      operator.register(Gadget, idle);
      return operator;
    }) as [Operator, Operator];
    await fixture.start(first);
    await fixture.until(() => first.health().leading);
    await fixture.start(second);
    await fixture.until(() => second.health().leader !== undefined);
    assert.equal(second.health().leading, false);
    assert.equal(second.health().started, true);
    const seen: string[] = [];
    first.register(ConfigMap, {
      reconcile: ({ metadata }) => void seen.push(metadata.name),
    });
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "late" },
    });
    await fixture.until(() => seen.includes("late"));
    assert.equal(first.health().leading, true);
  },
);

scenario(
  "An operator is healthy only if all of its controllers are",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, idle);
    operator.register(ConfigMap, idle, {
      sources: [{
        name: "sick",
        start: () => Promise.resolve(),
        stop: () => Promise.resolve(),
        health: () => ({ status: "unhealthy" }),
      }],
    });
    await fixture.start(operator);
    const { ready, healthy } = operator.health();
    assert.deepEqual([ready, healthy], [true, false]);
  },
);

scenario(
  "Controllers of an operator share one list of their field managers",
  async (fixture) => {
    const operator = fixture.operator();
    const lists: (readonly string[])[] = [];
    const source = {
      name: "looks",
      start: ({ fieldManagers }: { fieldManagers: readonly string[] }) =>
        Promise.resolve(void lists.push(fieldManagers)),
      stop: () => Promise.resolve(),
      health: () => ({ status: "healthy" as const }),
    };
    operator.register(Gadget, idle, { name: "b", sources: [source] });
    operator.register(ConfigMap, idle, {
      name: "a",
      takeOver: ["kubectl"],
      sources: [{ ...source }],
    });
    await fixture.start(operator);
    assert.deepEqual(lists[0], ["a", "b", "kubectl"]);
    assert.equal(lists[1], lists[0]);
  },
);

scenario(
  "An operator traces the requests of its reconcilers, and still fences writes",
  async (fixture) => {
    const tracer = new RecordedTracer();
    const clients: Client[] = [];
    const operator = fixture.operator({
      tracer,
      leaderElection: { name: "lock", namespace: "default" },
    });
    operator.register(Gadget, {
      async reconcile(_gadget, { client }) {
        clients.push(client);
        await client.find(ConfigMap, { namespace: "default", name: "m" });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => tracer.named("run gadget").length > 0);
    await fixture.settle();
    const [run] = tracer.named("run gadget");
    const inner = tracer.spans.filter(({ trace }) => trace === run?.trace);
    assert.ok(inner.some(({ kind }) => kind === 2), "a span of a request");
    await fixture.done(operator.stop());
    const metadata = { namespace: "default", name: "late" };
    await assert.rejects(
      async () => await clients[0]?.create(ConfigMap, { metadata }),
      /this replica is not the leader/,
    );
  },
);

const Part = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Part",
  spec: z.object({}),
});

scenario(
  "An operator has installed its definitions when that is awaited",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Part, idle);
    await fixture.done(operator.install());
    const metadata = { namespace: "default", name: "p" };
    await fixture.client.create(Part, { metadata, spec: {} });
  },
);

scenario(
  "A controller watches what another controller installs, in any order",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(ConfigMap, idle, { watches: [watch(Part)] });
    const { group, version, kind } = Part;
    const other = untyped({ group, version, kind });
    operator.register(Secret, idle, { watches: [watch(other)] });
    operator.register(Part, idle, { install: true });
    await fixture.start(operator);
    assert.deepEqual(
      operator.controllers.map(({ name }) => name),
      ["configmap", "secret", "part"],
    );
  },
);
