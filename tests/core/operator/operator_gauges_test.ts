import assert from "node:assert/strict";
import { test } from "node:test";
import type { InformerPool } from "../../../core/cache/informer/informer_pool.ts";
import type { ControllerHealth } from "../../../core/controller/controller.ts";
import { MetricsRegistry } from "../../../core/operator/metrics_registry.ts";
import { OperatorGauges } from "../../../core/operator/operator_gauges.ts";

test("OperatorGauges shows seconds, and the entries of all tiers in the index", () => {
  const metrics = new MetricsRegistry();
  const gauges = new OperatorGauges(metrics);
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
  } as ControllerHealth;
  const tier = (objects: number) => ({ objects, bytes: 100 * objects });
  const usage = {
    decoded: tier(1),
    bytes: tier(2),
    compressed: tier(3),
    keyOnly: tier(4),
    index: 50,
  };
  const budget = { used: 8, allowed: 9, pressure: undefined };
  gauges.set([health], {
    usage: () => new Map([["v1 Gadget", usage]]),
    budget,
  } as unknown as InformerPool);
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
  gauges.set([], undefined);
  assert.deepEqual(shown(), [
    "coracle_cache_budget_bytes 0",
    "coracle_cache_used_bytes 0",
  ]);
});

test("OperatorGauges measures the memory of the process, if its limit is known", () => {
  const metrics = new MetricsRegistry();
  const gauges = new OperatorGauges(metrics);
  const measured: number[] = [];
  const pressure = {
    used: 90,
    limit: 100,
    isHigh: false,
    measure(cached: number) {
      measured.push(cached);
      this.isHigh = true;
    },
  };
  const budget = { used: 8, allowed: 9, pressure };
  gauges.set([], { usage: () => new Map(), budget } as object as InformerPool);
  assert.deepEqual(measured, [8]);
  const text = metrics.text();
  for (
    const line of [
      "coracle_memory_used_bytes 90",
      "coracle_memory_limit_bytes 100",
      "coracle_memory_short 1",
    ]
  ) assert.ok(text.split("\n").includes(line), line);
});
