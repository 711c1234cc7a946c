import { ApiError, defineKind, Operator } from "@coracle/operator";
import type { OperatorOptions } from "@coracle/operator";
import type { MetricOptions, Metrics } from "@coracle/operator/core";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { Registry } from "prom-client";
import { z } from "zod";
import { openTelemetryMetrics } from "./open_telemetry_metrics.ts";
import { pinoLogger } from "./pino_logger.ts";
import { promClientMetrics } from "./prom_client_metrics.ts";

const Parcel = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Parcel",
  spec: z.object({ to: z.string() }),
});

/** Operator whose runs fail, so that each alert has something to show. */
function failing(options: OperatorOptions): Operator {
  const operator = new Operator({
    ...options,
    leaderElection: { name: "parcels" },
  });
  operator.register(Parcel, {
    reconcile({ spec }) {
      throw new ApiError(`Cannot send it to ${spec.to}`, {
        status: 503,
        reason: "ServiceUnavailable",
        details: { name: "a detail" },
      });
    },
  });
  return operator;
}

/** Wraps metrics so that what an adapter refuses is not hidden. */
function noting(metrics: Metrics, refused: unknown[]): Metrics {
  const noted = <M extends object>(metric: M): M =>
    new Proxy(metric, {
      get: (target, method) => (...args: unknown[]) => {
        try {
          const call = Reflect.get(target, method) as (
            ...all: unknown[]
          ) => void;
          return call.apply(target, args);
        } catch (error) {
          refused.push(error);
        }
      },
    });
  return {
    counter: (options) => noted(metrics.counter(options)),
    gauge: (options) => noted(metrics.gauge(options)),
    observableGauge: (options, observe) =>
      metrics.observableGauge(options, observe),
    histogram: (options: MetricOptions) => noted(metrics.histogram(options)),
  };
}

/** Runs an operator with these metrics until it has failed for ten seconds. */
async function observed(
  metrics: Metrics,
  check: () => Promise<void>,
): Promise<void> {
  const refused: unknown[] = [];
  await withTestCluster({
    kinds: [Parcel],
    clock: new VirtualClock(),
    operator: (options) =>
      failing({ ...options, metrics: noting(metrics, refused) }),
  }, async (cluster) => {
    await cluster.client.create(Parcel, {
      metadata: { namespace: cluster.namespace, name: "a" },
      spec: { to: "b" },
    });
    await cluster.until(() => cluster.log.includes("Run failed"));
    await cluster.clock.advance?.(10_000);
    await check();
    assert.deepEqual(refused, []);
  })();
}

test("prom-client gets each gauge when it is scraped, and counts runs", async () => {
  const registry = new Registry();
  const metrics = promClientMetrics(registry);
  await observed(metrics, async () => {
    const text = await registry.metrics();
    const of = '{controller="parcel"}';
    for (
      const line of [
        `coracle_failing_objects${of} 1`,
        `coracle_controller_active${of} 1`,
        `coracle_controller_healthy${of} 1`,
        `coracle_primaries${of} 1`,
        'coracle_reconciliation_causes_total{controller="parcel",cause="added"} 1',
        `coracle_reconciliation_duration_seconds_bucket{le="300",controller="parcel"}`,
      ]
    ) assert.ok(text.includes(`\n${line}`), `${line}\n${text}`);
    const [, oldest] = /oldest_failure_seconds\{.*\} (\S+)/.exec(text) ?? [];
    assert.ok(Number(oldest) >= 10, oldest);
    assert.match(text, /coracle_lease_held\{lease="[^"]+\/parcels"\} 1/);
    assert.match(text, /coracle_cache_used_bytes [1-9]/);
  });
  // A series of a gauge ends with what it shows, and one that is removed.
  let depth = 2;
  metrics.observableGauge(
    { name: "depth", help: "Depth.", labels: ["queue"] },
    () => depth > 0 ? [{ value: depth, labels: { queue: "a" } }] : [],
  );
  assert.match(await registry.metrics(), /^depth\{queue="a"\} 2$/m);
  depth = 0;
  assert.doesNotMatch(await registry.metrics(), /^depth\{/m);
  const options = { name: "calls", help: "Calls.", labels: ["to"] };
  const counter = metrics.counter(options);
  counter.add(3, { to: "a" });
  assert.match(await registry.metrics(), /^calls\{to="a"\} 3$/m);
  counter.remove({ to: "a" });
  assert.doesNotMatch(await registry.metrics(), /^calls\{/m);
});

test("OpenTelemetry gets each gauge when it collects, and counts runs", async () => {
  const exporter = new InMemoryMetricExporter(
    AggregationTemporality.CUMULATIVE,
  );
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: 3_600_000,
  });
  const provider = new MeterProvider({ readers: [reader] });
  const metrics = openTelemetryMetrics(provider.getMeter("parcels"));
  /** Values of a metric by their labels, as they are now. */
  const values = async (name: string) => {
    exporter.reset();
    await reader.forceFlush();
    const metric = exporter.getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(({ metrics }) => metrics)
      .find(({ descriptor }) => descriptor.name === name);
    return Object.fromEntries(
      (metric?.dataPoints ?? []).map(({ attributes, value }) => [
        Object.values(attributes).join(" "),
        value,
      ]),
    );
  };
  try {
    await observed(metrics, async () => {
      for (
        const name of [
          "coracle_failing_objects",
          "coracle_controller_active",
          "coracle_controller_healthy",
          "coracle_primaries",
        ]
      ) assert.deepEqual(await values(name), { parcel: 1 }, name);
      const oldest = await values("coracle_oldest_failure_seconds");
      assert.ok(Number(oldest["parcel"]) >= 10);
      assert.deepEqual(Object.values(await values("coracle_lease_held")), [1]);
      const runs = await values("coracle_reconciliations_total");
      assert.ok(Number(runs["parcel failure"]) >= 2);
      const objects = await values("coracle_informer_objects");
      assert.deepEqual(Object.values(objects), [1]);
    });
    const gauge = metrics.gauge({ name: "depth", help: "Depth." });
    gauge.set(3, { queue: "a" });
    gauge.add(-1, { queue: "a" });
    assert.deepEqual(await values("depth"), { a: 2 });
  } finally {
    await provider.shutdown();
  }
});

test("pino writes the error of a run with its stack, and no detail of a request", async () => {
  const lines: string[] = [];
  const log = pino({ level: "debug", base: { app: "parcels" } }, {
    write: (line) => void lines.push(line),
  });
  await withTestCluster({
    kinds: [Parcel],
    clock: new VirtualClock(),
    operator: (options) => failing({ ...options, logger: pinoLogger(log) }),
  }, async (cluster) => {
    await cluster.client.create(Parcel, {
      metadata: { namespace: cluster.namespace, name: "a" },
      spec: { to: "b" },
    });
    await cluster.until(() =>
      lines.some((line) => line.includes("Run failed"))
    );
  })();
  const line = JSON.parse(
    lines.find((line) => line.includes("Run failed")) ?? "{}",
  );
  assert.equal(line.level, 40, "a warning");
  assert.equal(line.app, "parcels");
  assert.equal(line.controller, "parcel", "the context of its logger");
  assert.equal(line.attempt, 1);
  assert.match(line.err.message, /^Cannot send it to b/);
  assert.match(line.err.stack, /adapters_test/);
  assert.doesNotMatch(lines.join(""), /a detail/);
});
