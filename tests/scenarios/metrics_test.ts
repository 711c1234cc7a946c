import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import {
  Client,
  type Gauge,
  type MetricOptions,
  type Metrics,
  type Observation,
} from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { alertRules } from "../../dev/cli/monitoring/alert_rules.ts";
import { startGadgets } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

const DASHBOARD = "dev/cli/monitoring/grafana_dashboard.json";
const ALERTS = JSON.stringify(alertRules("job='a'"));

async function projectText(path: string): Promise<string> {
  return await readFile(new URL(`../../${path}`, import.meta.url), "utf8");
}

/** The names of metrics in a text, without the endings of a histogram's series. */
function namesIn(text: string): Set<string> {
  return new Set(
    Array.from(
      text.matchAll(/\bcoracle_[a-z_]+/g),
      ([name]) => name.replace(/_(bucket|sum|count)$/, ""),
    ),
  );
}

scenario(
  "Dashboard and alerts use exposed metrics only, and each has a description",
  async (fixture) => {
    const { operator, runs } = await startGadgets(fixture, () => {}, {
      sources: [watch(ConfigMap)],
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    const told = new Map(
      Array.from(
        operator.metrics().matchAll(/^# HELP (\S+) (.+)$/gm),
        ([, name = "", help = ""]) => [name, help],
      ),
    );
    // The client of this case counts nothing: it is not the operator's own. It has
    // no jobs and no snapshots, and admits nothing.
    const ofOthers = [
      "coracle_admission_requests_total",
      "coracle_admission_duration_seconds",
      "coracle_webhook_refusals_total",
      "coracle_webhooks_registered",
      "coracle_webhook_certificate_expiration_timestamp_seconds",
      "coracle_snapshot_restored_objects",
      "coracle_snapshot_bytes",
      "coracle_snapshot_age_seconds",
      "coracle_snapshot_refused_total",
      "coracle_snapshot_errors_total",
      "coracle_client_requests_total",
      "coracle_client_request_duration_seconds",
      "coracle_job_last_success_timestamp_seconds",
      "coracle_job_next_run_timestamp_seconds",
    ];
    const known = new Set([...told.keys(), ...ofOthers]);
    const shown = namesIn(await projectText(DASHBOARD));
    assert.deepEqual([...shown].filter((name) => !known.has(name)), []);
    const alerting = namesIn(ALERTS);
    assert.deepEqual([...alerting].filter((name) => !known.has(name)), []);
    const guide = namesIn(await projectText("docs/observability.md"));
    assert.deepEqual([...guide].filter((name) => !known.has(name)), []);
    assert.ok(shown.size > 20, `${shown.size} metrics are shown`);
    const described = namesIn(
      await projectText("core/operator/metrics_registry.ts"),
    );
    assert.deepEqual([...known].filter((name) => !described.has(name)), []);
    assert.deepEqual([...described].filter((name) => !known.has(name)), []);
    for (const [name, help] of told) {
      assert.match(help, /^[A-Z].+\.$/, `${name} says what it means`);
    }
  },
);

test("Alerts and dashboard have each metric for which the guide names an alert", async () => {
  const guide = await projectText("docs/observability.md");
  const named = guide.matchAll(/^\| `(coracle_\w+)` .*\| (.*)\|$/gm);
  const alerting = namesIn(ALERTS);
  const shown = namesIn(await projectText(DASHBOARD));
  assert.deepEqual([...alerting].filter((name) => !shown.has(name)), []);
  for (const [, name = "", when = ""] of named) {
    assert.equal(alerting.has(name), when.trim() !== "", name);
    alerting.delete(name);
  }
  // Another alert compares with this one.
  assert.deepEqual([...alerting], ["coracle_primaries"]);
});

scenario(
  "Counters begin at zero for alerts, which see no growth of a new series",
  async (fixture) => {
    const { operator } = await startGadgets(fixture, () => {});
    const names = Array.from(ALERTS.matchAll(/increase\((\w+)\{job='a'\}\[/g));
    assert.equal(names.length, 2);
    for (const [, name] of names) {
      const series = `\n${name}{controller="gadget"} 0\n`;
      assert.ok(operator.metrics().includes(series), name);
    }
  },
);

scenario(
  "Alerts and dashboard count an object once that a standby caches, too",
  async (fixture) => {
    await fixture.create("a");
    const start = async () => {
      const { operator } = await startGadgets(fixture, () => {}, {
        operator: { leaderElection: { name: "lock" } },
      });
      await fixture.until(() =>
        operator.metrics().includes(
          '\ncoracle_primaries{controller="gadget"} 1\n',
        )
      );
    };
    await start();
    await start();
    for (const text of [ALERTS, await projectText(DASHBOARD)]) {
      assert.match(text, /max by \(controller\) \(coracle_primaries/);
      assert.doesNotMatch(
        text,
        /(?<!max by \(controller\) \()coracle_primaries/,
      );
    }
  },
);

test("Dashboard shows each gauge of clusters, by controller and cluster", async () => {
  const text = await projectText("core/operator/operator_gauges.ts");
  const shown = namesIn(await projectText(DASHBOARD));
  const names = [...namesIn(text)].filter((name) =>
    /_clusters?_|_clusters$/.test(name)
  );
  assert.ok(names.length >= 6, `${names}`);
  assert.deepEqual(names.filter((name) => !shown.has(name)), []);
});

test("Panels of the dashboard do not overlap, and each has a title and a query", async () => {
  const { panels } = JSON.parse(
    await projectText(DASHBOARD),
  ) as {
    panels: {
      title: string;
      type: string;
      targets?: { expr: string }[];
      gridPos: { x: number; y: number; w: number; h: number };
    }[];
  };
  const taken = new Set<string>();
  for (const { title, type, targets, gridPos } of panels) {
    assert.ok(title !== "");
    if (type !== "row") assert.ok(targets?.every(({ expr }) => expr !== ""));
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !taken.has(`${x} ${y}`), `${title} overlaps`);
        taken.add(`${x} ${y}`);
      }
    }
  }
});

/**
 * Metrics that collect when they are asked, as those of other libraries do, and
 * refuse labels that were not declared.
 */
class DeclaredMetrics implements Metrics {
  readonly #series: Map<string, Map<string, number>> = new Map();
  readonly #observed: (() => void)[] = [];

  counter(options: MetricOptions): Gauge {
    return this.gauge(options);
  }

  gauge({ name, labels: declared = [] }: MetricOptions): Gauge {
    const values = this.#series.get(name) ?? new Map<string, number>();
    this.#series.set(name, values);
    const seriesOf = (labels: object = {}) => {
      assert.deepEqual(Object.keys(labels).sort(), [...declared].sort(), name);
      return JSON.stringify(labels);
    };
    return {
      set: (value, labels) => values.set(seriesOf(labels), value),
      add(value, labels) {
        const series = seriesOf(labels);
        values.set(series, value + (values.get(series) ?? 0));
      },
      remove: (labels) => values.delete(seriesOf(labels)),
    };
  }

  observableGauge(
    options: MetricOptions,
    observe: () => Iterable<Observation>,
  ): void {
    const gauge = this.gauge(options);
    this.#observed.push(() => {
      this.#series.get(options.name)?.clear();
      for (const { value, labels } of observe()) gauge.set(value, labels);
    });
  }

  histogram(options: MetricOptions) {
    const { add, remove } = this.gauge(options);
    return { observe: add, remove };
  }

  /** Values of a metric by their labels, as they are now. */
  collect(name: string): Record<string, number> {
    for (const observe of this.#observed) observe();
    return Object.fromEntries(this.#series.get(name) ?? []);
  }
}

scenario(
  "Metrics of an adapter get each gauge when collected, with declared labels",
  async (fixture) => {
    const metrics = new DeclaredMetrics();
    const failed: unknown[] = [];
    // Without the wrapper that hides what an adapter refuses.
    const strict = (metric: object) =>
      new Proxy(metric, {
        get: (target, method) => (...args: unknown[]) => {
          try {
            return Reflect.get(target, method).apply(target, args);
          } catch (error) {
            failed.push(error);
          }
        },
      });
    const operator = fixture.operator({
      client: new Client({ transport: fixture.transport }, {
        clock: fixture.clock,
        metrics,
      }),
      leaderElection: { name: "lock", namespace: "default" },
      metrics: {
        counter: (options) => strict(metrics.counter(options)) as Gauge,
        gauge: (options) => strict(metrics.gauge(options)) as Gauge,
        observableGauge: (options, observe) =>
          metrics.observableGauge(options, observe),
        histogram: (options) =>
          strict(metrics.histogram(options)) as ReturnType<
            Metrics["histogram"]
          >,
      },
    });
    operator.register(Gadget, {
      reconcile() {
        throw new Error("As asked");
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    const of = '{"controller":"gadget"}';
    await fixture.create("a");
    await fixture.until(() =>
      metrics.collect("coracle_failing_objects")[of] === 1
    );
    await fixture.advance(5_000);
    const value = (name: string) => metrics.collect(name)[of];
    assert.ok(value("coracle_oldest_failure_seconds")! >= 5);
    assert.equal(value("coracle_controller_active"), 1);
    assert.equal(value("coracle_controller_healthy"), 1);
    assert.equal(value("coracle_primaries"), 1);
    assert.deepEqual(metrics.collect("coracle_lease_held"), {
      '{"lease":"default/lock"}': 1,
    });
    assert.ok(metrics.collect("coracle_cache_used_bytes")["{}"]! > 0);
    await fixture.done(operator.unregister("gadget"));
    assert.deepEqual(metrics.collect("coracle_failing_objects"), {});
    assert.deepEqual(failed, []);
  },
);

scenario(
  "The gauges of a controller end and begin again with it",
  async (fixture) => {
    const operator = fixture.operator();
    const register = () =>
      operator.register(ConfigMap, { reconcile() {} }, { name: "maps" });
    operator.register(Gadget, { reconcile() {} });
    register();
    await fixture.start(operator);
    const shown = () => {
      const text = operator.metrics();
      const maps = [
        'coracle_primaries{controller="maps"}',
        'coracle_cache_objects{kind="v1 ConfigMap",tier="bytes"}',
      ].map((series) => text.includes(`\n${series} `));
      assert.ok(text.includes('\ncoracle_primaries{controller="gadget"} '));
      return maps;
    };
    assert.deepEqual(shown(), [true, true]);
    await fixture.done(operator.unregister("maps"));
    assert.deepEqual(shown(), [false, false]);
    register();
    await fixture.until(() => operator.health().ready);
    assert.deepEqual(shown(), [true, true]);
  },
);
