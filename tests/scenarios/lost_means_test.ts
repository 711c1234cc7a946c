/**
 * What an operator needs is taken away while it runs: health, a gauge and the
 * log say so within a stated time, and that it is back.
 */
import assert from "node:assert/strict";
import { Client } from "@coracle/operator/client";
import type {
  Operator,
  OperatorHealth,
  OperatorOptions,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { pollingSource, watch } from "@coracle/operator/sources";
import { limitedClient } from "../support/limited_client.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const GADGETS = {
  apiGroups: ["sample.coracle.dev"],
  resources: ["gadgets", "gadgets/status"],
  verbs: ["*"],
};
const MAPS = { apiGroups: [""], resources: ["configmaps"], verbs: ["*"] };
const LEASES = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["*"],
};
const REVIEWS = {
  apiGroups: ["authorization.k8s.io"],
  resources: ["selfsubjectaccessreviews"],
  verbs: ["create"],
};

/** Value of a series of an operator; undefined if none exists. */
function gauge(operator: Operator, series: string): number | undefined {
  const line = operator.metrics().split("\n").find((line) =>
    line.startsWith(`${series} `)
  );
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

/** Waits at most a time of the clock, and gives how long it took. */
async function within(
  fixture: OperatorFixture,
  limit: number,
  condition: () => boolean,
): Promise<void> {
  const began = fixture.clock.now();
  await fixture.until(condition, limit + 1_000);
  const took = fixture.clock.now() - began;
  assert.ok(took <= limit, `${condition} after ${took} ms, not ${limit}`);
}

function logged(fixture: OperatorFixture, level: string, pattern: RegExp) {
  return fixture.log.some((line) =>
    line.level === level &&
    pattern.test(`${line.message} ${line.fields?.["error"]}`)
  );
}

for (
  const [use, options] of [
    ["leader election", { leaderElection: { name: "lock", identity: "a" } }],
    ["sharding", { sharding: { name: "lock", identity: "a" } }],
  ] as readonly [string, OperatorOptions][]
) {
  scenario(
    `Rights on Leases that are taken away show within 30 s, with ${use}`,
    async (fixture) => {
      const rights = await limitedClient(fixture, [REVIEWS, LEASES, GADGETS]);
      const operator = fixture.operator({ client: rights.client, ...options });
      let runs = 0;
      const controller = operator.register(Gadget, {
        reconcile() {
          runs++;
        },
      });
      await fixture.start(operator);
      await fixture.create("x");
      await fixture.until(() => runs === 1);
      const lease = '{lease="default/lock"}';
      const state = ({ ready, healthy, leading, lease }: OperatorHealth) => [
        ready,
        healthy,
        leading,
        lease?.held,
        controller.health().active,
      ];
      const good = [true, true, true, true, true];
      assert.deepEqual(state(operator.health()), good);
      assert.equal(gauge(operator, `coracle_lease_held${lease}`), 1);
      assert.equal(gauge(operator, `coracle_lease_failing_seconds${lease}`), 0);

      await rights.grant([REVIEWS, GADGETS]);
      await within(fixture, 30_000, () => !operator.health().healthy);
      const bad = [false, false, false, false, false];
      assert.deepEqual(state(operator.health()), bad);
      assert.equal(gauge(operator, `coracle_lease_held${lease}`), 0);
      assert.ok(
        gauge(operator, `coracle_lease_failing_seconds${lease}`)! >= 15,
      );
      assert.equal(
        gauge(operator, 'coracle_controller_active{controller="gadget"}'),
        0,
      );
      const { failingFor = 0, error = "" } = operator.health().lease ?? {};
      assert.ok(failingFor >= 15_000 && failingFor <= 30_000, `${failingFor}`);
      assert.match(error, /forbidden/i);
      await fixture.advance(5_000);
      assert.ok(logged(fixture, "error", /Cannot reach the lease.*forbidden/i));
      await fixture.change("x", { value: "second" });
      await fixture.advance(5_000);
      assert.equal(runs, 1, "nothing runs");

      await rights.grant([REVIEWS, GADGETS, LEASES]);
      await within(fixture, 30_000, () => runs >= 2);
      assert.deepEqual(state(operator.health()), good);
      assert.equal(operator.health().lease?.error, undefined);
      assert.equal(gauge(operator, `coracle_lease_failing_seconds${lease}`), 0);
    },
  );
}

scenario(
  "A standby that cannot read the Lease is not ready within 30 s",
  async (fixture) => {
    const options = { leaderElection: { name: "lock" } };
    const leader = fixture.operator(options);
    leader.register(Gadget, { reconcile() {} });
    await fixture.start(leader);
    await fixture.until(() => leader.health().leading);
    const rights = await limitedClient(fixture, [REVIEWS, LEASES, GADGETS]);
    const standby = fixture.operator({ client: rights.client, ...options });
    standby.register(Gadget, { reconcile() {} });
    await fixture.start(standby);
    await fixture.advance(30_000);
    assert.deepEqual([standby.health().ready, standby.health().leading], [
      true,
      false,
    ]);
    assert.equal(standby.health().lease?.failingFor, 0);
    await rights.grant([REVIEWS, GADGETS]);
    await within(fixture, 30_000, () => !standby.health().ready);
    assert.equal(leader.health().ready, true);
  },
);

for (
  const [what, kind] of [["primaries", "gadgets"], ["secondaries", "maps"]]
) {
  scenario(
    `The right to watch ${what} that is taken away shows within 60 s`,
    async (fixture) => {
      const rights = await limitedClient(fixture, [MAPS, GADGETS]);
      const operator = fixture.operator({ client: rights.client });
      operator.register(Gadget, { reconcile() {} }, {
        sources: [watch(ConfigMap)],
      });
      await fixture.start(operator);
      const series = 'coracle_controller_healthy{controller="gadget"}';
      assert.equal(gauge(operator, series), 1);
      const left = kind === "maps" ? GADGETS : MAPS;
      await rights.grant([left]);
      fixture.faults.endWatches(); // A real one ends them after minutes.
      await within(fixture, 60_000, () => !operator.health().healthy);
      assert.equal(gauge(operator, series), 0);
      assert.equal(operator.health().ready, true, "its caches can be read");
      assert.ok(
        logged(fixture, "warn", /list or watch failed.*right is missing/),
      );
      await rights.grant([MAPS, GADGETS]);
      await within(fixture, 120_000, () => operator.health().healthy);
      assert.equal(gauge(operator, series), 1);
    },
    { embedded: "a real server ends watches after minutes" },
  );
}

scenario(
  "A source that fails shows within two intervals, and when it works again",
  async (fixture) => {
    let isBroken = false;
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      sources: [
        pollingSource({
          name: "tags",
          interval: "10s",
          fetch() {
            if (isBroken) throw new Error("The registry is away");
            return new Map();
          },
        }),
      ],
    });
    await fixture.start(operator);
    const series = 'coracle_controller_healthy{controller="gadget"}';
    assert.equal(gauge(operator, series), 1);
    isBroken = true;
    await within(fixture, 20_000, () => !operator.health().healthy);
    assert.equal(gauge(operator, series), 0);
    const [controller] = operator.health().controllers;
    assert.match(
      controller?.sources.get("tags")?.message ?? "",
      /The registry is away/,
    );
    assert.ok(logged(fixture, "warn", /The registry is away/));
    isBroken = false;
    await within(fixture, 20_000, () => operator.health().healthy);
    assert.equal(gauge(operator, series), 1);
  },
);

scenario(
  "A server that is away shows within 60 s",
  async (fixture) => {
    let isAway = false;
    const client = new Client({
      transport: {
        send(request) {
          if (isAway) return Promise.reject(new Error("connect ECONNREFUSED"));
          return fixture.transport.send(request);
        },
        close: () => Promise.resolve(),
      },
    }, { clock: fixture.clock });
    const operator = fixture.operator({ client });
    operator.register(Gadget, { reconcile() {} });
    await fixture.start(operator);
    isAway = true;
    fixture.faults.endWatches();
    await within(fixture, 60_000, () => !operator.health().healthy);
    assert.equal(
      gauge(operator, 'coracle_controller_healthy{controller="gadget"}'),
      0,
    );
    assert.ok(logged(fixture, "warn", /list or watch failed.*ECONNREFUSED/));
    isAway = false;
  },
  { embedded: "a real server ends watches after minutes" },
);

scenario(
  "Memory that is short shows at once",
  async (fixture) => {
    const operator = fixture.operator({ cache: { memoryLimit: 1 } });
    operator.register(Gadget, { reconcile() {} });
    await fixture.start(operator);
    assert.equal(operator.health().memoryIsShort, true);
    assert.equal(gauge(operator, "coracle_memory_short"), 1);
    assert.ok(logged(fixture, "warn", /memory/i));
    const roomy = fixture.operator({ cache: { memoryLimit: "1000Gi" } });
    roomy.register(Gadget, { reconcile() {} });
    await fixture.start(roomy);
    assert.equal(roomy.health().memoryIsShort, false);
  },
);
