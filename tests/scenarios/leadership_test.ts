import assert from "node:assert/strict";
import {
  Client,
  type ControllerHandle,
  type Operator,
  type OperatorOptions,
  patchStatus,
  type Transport,
} from "@coracle/operator/core";
import { ConfigMap, Lease, Namespace } from "@coracle/operator/kinds";
import { pollingSource } from "@coracle/operator/sources";
import { limitedClient } from "../support/limited_client.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

interface Replica {
  readonly operator: Operator;
  readonly controller: ControllerHandle<Gadget>;
  readonly seen: string[];
}

/** Replica of an operator. */
function replica(
  fixture: OperatorFixture,
  identity: string,
  options: OperatorOptions = {},
): Replica {
  const seen: string[] = [];
  const operator = fixture.operator({
    leaderElection: { name: "lock", identity },
    ...options,
  });
  const controller = operator.register(Gadget, {
    reconcile(gadget) {
      seen.push(gadget.spec.value);
      return patchStatus({ value: identity });
    },
  }, { namespaces: ["default"] });
  return { operator, controller, seen };
}

scenario(
  "Only the leader runs; the next leader takes over with warm caches [LeaderElectionE2E]",
  async (fixture) => {
    const a = replica(fixture, "a");
    const b = replica(fixture, "b");
    await fixture.start(a.operator);
    await fixture.until(() => a.operator.health().leading);
    await fixture.start(b.operator);
    await fixture.create("x");
    await fixture.until(async () =>
      (await fixture.gadget("x"))?.status?.value === "a"
    );
    await fixture.advance(30_000);
    assert.deepEqual(b.seen, []);
    assert.equal(b.operator.health().leading, false);
    assert.equal(b.operator.health().leader, "a");
    assert.equal(b.operator.health().ready, true, "a standby is ready");
    assert.equal(b.controller.health().primaries, 1, "and its caches are warm");
    await fixture.done(a.operator.stop());
    await fixture.until(() => b.operator.health().leading, 5_000);
    await fixture.until(() => b.seen.length === 1);
    await fixture.change("x", { value: "second" });
    await fixture.until(async () =>
      b.seen.length === 2 && (await fixture.gadget("x"))?.status?.value === "b"
    );
    assert.deepEqual(a.seen, ["first"]);
  },
);

for (const mode of ["leaderElection", "sharding"] as const) {
  scenario(
    `A replica that takes over by ${mode} sees what the other has created outside`,
    async (fixture) => {
      const rooms: string[] = [];
      const start = async (identity: string) => {
        const source = pollingSource<Gadget, string>({
          name: "rooms",
          interval: "1h",
          fetch: () => new Map([["default/x", [...rooms]]]),
        });
        const operator = fixture.operator({
          [mode]: { name: "lock", identity },
        });
        operator.register(Gadget, {
          async reconcile(gadget, ctx) {
            if ((await ctx.secondaries(source)).length > 0) return;
            rooms.push(identity);
            source.ownExternalWrite(gadget, identity);
          },
        }, { namespaces: ["default"], sources: [source] });
        await fixture.start(operator);
        return operator;
      };
      const replicas = new Map<string | undefined, Operator>();
      for (const name of ["a", "b"]) replicas.set(name, await start(name));
      await fixture.advance(30_000);
      await fixture.create("x");
      await fixture.until(() => rooms.length === 1);
      const [first] = rooms;
      await fixture.done(replicas.get(first)?.stop() ?? Promise.reject(first));
      await fixture.advance(60_000);
      assert.deepEqual(rooms, [first]);
    },
  );
}

scenario(
  "A leader that stood still beyond its lease begins no run until it leads again",
  async (fixture) => {
    let stoodStill = 0;
    const { clock } = fixture;
    const a = replica(fixture, "a", {
      clock: {
        now: () => clock.now() + stoodStill,
        wallTime: () => clock.wallTime() + stoodStill,
        setTimer: (callback, delay) => clock.setTimer(callback, delay),
      },
    });
    await fixture.start(a.operator);
    await fixture.until(() => a.operator.health().leading);
    await fixture.create("x");
    await fixture.until(() => a.seen.length === 1);
    stoodStill = 20_000;
    await fixture.change("x", { value: "second" });
    await fixture.settle();
    assert.deepEqual(a.seen, ["first"]);
    await fixture.until(() => a.seen.includes("second"));
    assert.ok(a.operator.health().leading);
  },
);

scenario(
  "A replica that starts while the server is away waits, as without a lease",
  async (fixture) => {
    let isAway = true;
    const transport: Transport = {
      ...fixture.transport,
      send: (request) =>
        isAway
          ? Promise.reject(new Error("connection refused"))
          : fixture.transport.send(request),
      close: () => Promise.resolve(),
    };
    const client = new Client({ transport, namespace: "default" }, {
      clock: fixture.clock,
    });
    const a = replica(fixture, "a", { client });
    await fixture.create("x");
    fixture.clock.setTimer(() => isAway = false, 10_000);
    await fixture.start(a.operator);
    await fixture.until(() => a.seen.length === 1);
    assert.ok(fixture.clock.now() >= 10_000);
  },
);

scenario(
  "A leader that is stopped does not warn about it",
  async (fixture) => {
    const a = replica(fixture, "a");
    await fixture.start(a.operator);
    await fixture.until(() => a.operator.health().leading);
    await fixture.done(a.operator.stop());
    const lines = fixture.log.filter(({ message }) =>
      message.startsWith("Stopped leading")
    );
    assert.deepEqual(lines.map(({ level }) => level), ["info"]);
  },
);

for (const coordination of ["leaderElection", "sharding"] as const) {
  scenario(
    `A replica that stops while a run goes on keeps its lease of ${coordination}`,
    async (fixture) => {
      const holders = async () =>
        (await fixture.client.list(Lease, { namespace: "default" })).items
          .map(({ spec }) => spec?.holderIdentity).filter(Boolean).length;
      for (const endless of [false, true]) {
        const a = replica(fixture, "a", {
          leaderElection: undefined,
          [coordination]: { name: `lock-${endless}`, identity: "a" },
          shutdownGrace: "1s",
        });
        let runs = 0;
        a.operator.register(Gadget, {
          reconcile: () => {
            runs++;
            return endless ? new Promise<void>(() => {}) : undefined;
          },
        }, { name: "second" });
        await fixture.start(a.operator);
        await fixture.create(`x-${endless}`);
        await fixture.until(() => runs > 0);
        assert.equal(await holders(), 1);
        await fixture.done(a.operator.stop());
        assert.equal(await holders(), Number(endless));
      }
    },
  );
}

scenario(
  "A replica that loses its lease stops writing, does not exit and can lead again [3.9.2]",
  async (fixture) => {
    const a = replica(fixture, "a");
    await fixture.start(a.operator);
    await fixture.until(() => a.operator.health().leading);
    let write: Promise<unknown> | undefined;
    const slow = a.operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        if (gadget.spec.value !== "slow" || write !== undefined) return;
        await new Promise<void>((resolve) =>
          ctx.signal.addEventListener("abort", () => resolve())
        );
        write = ctx.client.create(ConfigMap, {
          metadata: { namespace: "default", name: "late" },
        });
        write.catch(() => {});
      },
    }, { name: "slow" });
    await fixture.until(() => slow.health().ready);
    await fixture.create("x", { value: "slow" });
    await fixture.settle();
    const fault = fixture.faults.add({
      resource: "leases",
      effect: { status: 500 },
    });
    await fixture.until(() => !a.operator.health().leading);
    await fixture.settle();
    assert.match(String(await write?.catch(String)), /is not the leader/);
    assert.equal(
      await fixture.client.find(ConfigMap, {
        namespace: "default",
        name: "late",
      }),
      undefined,
    );
    await fixture.change("x", { value: "second" });
    await fixture.advance(10_000);
    assert.ok(!a.seen.includes("second"), "nothing is run any more");
    fault.remove();
    await fixture.until(() => a.operator.health().leading);
    await fixture.until(() => a.seen.includes("second"));
  },
);

scenario(
  "Without the lease nothing runs, before and after a change of namespaces [LeaderElectionChangeNamespaceIT]",
  async (fixture) => {
    await fixture.client.create(Namespace, { metadata: { name: "other" } });
    const hold = async () => {
      const key = { namespace: "default", name: "lock" };
      const present = await fixture.client.find(Lease, key);
      const now = new Date(fixture.clock.wallTime()).toISOString().replace(
        "Z",
        "000Z",
      );
      const spec = {
        holderIdentity: "somebody",
        leaseDurationSeconds: 3600,
        renewTime: now,
        acquireTime: now,
      };
      if (present === undefined) {
        await fixture.client.create(Lease, { metadata: key, spec });
      }
    };
    await hold();
    const a = replica(fixture, "a");
    await fixture.start(a.operator);
    await fixture.create("x");
    await fixture.advance(10_000);
    assert.deepEqual(a.seen, []);
    await fixture.done(a.controller.changeNamespaces(["default", "other"]));
    await fixture.client.create(Gadget, {
      metadata: { namespace: "other", name: "y" },
      spec: { value: "y" },
    });
    await fixture.advance(10_000);
    assert.deepEqual(a.seen, []);
    assert.equal(a.controller.health().primaries, 2);
  },
);

scenario(
  "A missing permission on the lease fails the start and is named [LeaderElectionPermissionIT]",
  async (fixture) => {
    const { client } = await limitedClient(fixture, [
      {
        apiGroups: ["sample.coracle.dev"],
        resources: ["*"],
        verbs: ["list", "watch"],
      },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["get"],
      },
    ]);
    const operator = fixture.operator({
      client,
      leaderElection: { name: "lock" },
    });
    operator.register(Gadget, { reconcile() {} });
    await assert.rejects(
      fixture.start(operator),
      /Lease default\/lock: the right to create, update is missing.*verbs: \["get", "create", "update"\]/s,
    );
  },
);

scenario(
  "A leader that stops leads until its last run has ended, and says so",
  async (fixture) => {
    for (const leaderElection of [undefined, { name: "lock", identity: "a" }]) {
      const operator = fixture.operator({ leaderElection });
      const held = Promise.withResolvers<void>();
      let runs = 0;
      operator.register(Gadget, {
        async reconcile() {
          runs++;
          await held.promise;
        },
      });
      await fixture.start(operator);
      await fixture.create("x");
      await fixture.until(() => runs === 1);
      assert.equal(operator.health().leading, true);
      const stopped = operator.stop();
      await fixture.settle();
      const health = operator.health();
      assert.deepEqual([health.ready, health.leading], [false, true]);
      if (leaderElection !== undefined) {
        assert.equal(health.lease?.held, true);
        const key = { namespace: "default", name: "lock" };
        const lease = await fixture.client.get(Lease, key);
        assert.equal(lease.spec?.holderIdentity, "a");
      }
      held.resolve();
      await fixture.done(stopped);
      assert.equal(operator.health().leading, false);
      await fixture.remove("x");
    }
  },
);
