import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  type ControllerHealth,
  type InformerPool,
  MetricsRegistry,
  Operator,
  silentLogger,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  addOperatorGauges,
  type ObservedState,
} from "../../../core/operator/operator_gauges.ts";
import { RUNTIME } from "../../support/program.ts";

const NOTHING: ObservedState = {
  controllers: [],
  lease: undefined,
  informers: undefined,
};

test("Gauges of an operator show seconds, and the entries of all tiers in the index", () => {
  const metrics = new MetricsRegistry();
  let state: ObservedState = NOTHING;
  addOperatorGauges(metrics, metrics, () => state);
  const health = {
    name: "gadget",
    running: 1,
    overdue: 2,
    waiting: 3,
    delayed: 4,
    primaries: 5,
    failing: 6,
    oldestFailure: 7_500,
    ready: true,
    active: false,
    healthy: true,
  } as ControllerHealth;
  const lease = {
    name: "default/lock",
    held: true,
    healthy: true,
    failingFor: 2_500,
    error: "Refused",
  };
  const tier = (objects: number) => ({ objects, bytes: 100 * objects });
  const usage = {
    decoded: tier(1),
    bytes: tier(2),
    compressed: tier(3),
    keyOnly: tier(4),
    index: 50,
  };
  const budget = { used: 8, allowed: 9, pressure: undefined };
  state = {
    controllers: [health],
    lease,
    informers: {
      usage: () => new Map([["v1 Gadget", usage]]),
      budget,
    } as unknown as InformerPool,
  };
  const shown = () =>
    metrics.text().split("\n").filter((line) => /^coracle/.test(line));
  const of = '{controller="gadget"}';
  const kind = (tier: string) => `{kind="v1 Gadget",tier="${tier}"}`;
  const all = shown();
  for (
    const line of [
      `coracle_reconciliations_active${of} 1`,
      `coracle_reconciliations_overdue${of} 2`,
      `coracle_queue_depth${of} 3`,
      `coracle_queue_delayed${of} 4`,
      `coracle_primaries${of} 5`,
      `coracle_failing_objects${of} 6`,
      `coracle_oldest_failure_seconds${of} 7.5`,
      `coracle_controller_ready${of} 1`,
      `coracle_controller_active${of} 0`,
      `coracle_controller_healthy${of} 1`,
      'coracle_lease_held{lease="default/lock"} 1',
      'coracle_lease_failing_seconds{lease="default/lock"} 2.5',
      `coracle_cache_objects${kind("decoded")} 1`,
      `coracle_cache_objects${kind("bytes")} 2`,
      `coracle_cache_objects${kind("compressed")} 3`,
      `coracle_cache_objects${kind("key_only")} 4`,
      `coracle_cache_objects${kind("index")} 9`,
      `coracle_cache_bytes${kind("compressed")} 300`,
      `coracle_cache_bytes${kind("index")} 50`,
      "coracle_cache_used_bytes 8",
      "coracle_cache_budget_bytes 9",
    ]
  ) {
    assert.ok(all.includes(line), `${line}\n${all.join("\n")}`);
  }
  state = NOTHING;
  assert.deepEqual(shown().filter((line) => !/log_lines/.test(line)), [
    "coracle_cache_budget_bytes 0",
    "coracle_cache_used_bytes 0",
  ]);
});

test("Gauges of an operator show the memory of the process, if its limit is known", () => {
  const metrics = new MetricsRegistry();
  const pressure = { used: 90, limit: 100, isHigh: true };
  const budget = { used: 8, allowed: 9, pressure };
  const informers = { usage: () => new Map(), budget } as object;
  const state = { ...NOTHING, informers: informers as InformerPool };
  addOperatorGauges(metrics, state, () => state);
  const text = metrics.text();
  for (
    const line of [
      "coracle_memory_used_bytes 90",
      "coracle_memory_limit_bytes 100",
      "coracle_memory_short 1",
    ]
  ) assert.ok(text.split("\n").includes(line), line);
});

test(
  "Metrics that outlive an operator do not keep it in memory",
  { skip: RUNTIME !== "node" && "Garbage is collected on command on Node" },
  async (t) => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const server = await ApiServer.start({ port: false });
    t.after(() => server.stop());
    const metrics = new MetricsRegistry();
    /** Runs an operator that nobody keeps. */
    async function run(): Promise<WeakRef<Operator>> {
      const operator = new Operator({
        client: server.client,
        metrics,
        logger: silentLogger,
      });
      operator.register(ConfigMap, { reconcile() {} });
      await operator.start();
      assert.match(metrics.text(), /coracle_controller_ready/);
      await operator.stop();
      return new WeakRef(operator);
    }
    const operator = await run();
    for (let i = 0; i < 100 && operator.deref() !== undefined; i++) {
      await sleep(20);
      collect();
    }
    assert.equal(operator.deref(), undefined);
    assert.doesNotMatch(metrics.text(), /coracle_controller_ready\{/);
  },
);
