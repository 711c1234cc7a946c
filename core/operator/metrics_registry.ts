import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import type {
  Counter,
  Gauge,
  Histogram,
  MetricLabels,
  MetricOptions,
  Metrics,
  Observation,
} from "../metrics.ts";
import { attempt } from "../callback.ts";

type MetricType = "counter" | "gauge" | "histogram";

/** Options of any metric; only histograms have buckets. */
type FamilyOptions = Parameters<Metrics["histogram"]>[0];

/** Default upper bounds of histograms, in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const NO_LABELS: MetricLabels = Object.freeze({});

const RULES: OptionRules<MetricOptions> = {
  name: "string",
  help: "string",
  labels: "array?",
};

/**
 * Metrics registry that exports the text format of Prometheus.
 *
 * A time series is created by its first write. Callers that count often should
 * pass the same frozen object of labels each time, which is then found by its
 * identity.
 *
 * An operator has the metrics below; the export contains a description of each.
 * The examples include a dashboard for Grafana.
 *
 * | metric | labels |
 * | --- | --- |
 * | `coracle_reconciliations_total` | `controller`, `result` |
 * | `coracle_reconciliations_active`, `coracle_reconciliations_overdue` | `controller` |
 * | `coracle_reconciliation_duration_seconds` | `controller` |
 * | `coracle_reconciliation_causes_total` | `controller`, `cause` |
 * | `coracle_reconciliation_events_total` | `controller` |
 * | `coracle_reconciliation_retries_total` | `controller` |
 * | `coracle_failing_objects`, `coracle_oldest_failure_seconds` | `controller` |
 * | `coracle_retries_exhausted` | `controller` |
 * | `coracle_write_loops_total` | `controller` |
 * | `coracle_events_dropped_total` | `controller` |
 * | `coracle_queue_depth`, `coracle_queue_delayed` | `controller` |
 * | `coracle_queue_wait_seconds` | `controller` |
 * | `coracle_primaries` | `controller` |
 * | `coracle_controller_ready`, `coracle_controller_active`, `coracle_controller_healthy` | `controller` |
 * | `coracle_controller_start_seconds` | `controller` |
 * | `coracle_job_last_success_timestamp_seconds`, `coracle_job_next_run_timestamp_seconds` | `controller` |
 * | `coracle_lease_held`, `coracle_lease_failing_seconds` | `lease` |
 * | `coracle_log_lines_lost` | |
 * | `coracle_informer_events_total` | `kind`, `type` |
 * | `coracle_informer_relists_total` | `kind` |
 * | `coracle_informer_errors_total` | `kind`, `reason` |
 * | `coracle_informer_handler_errors_total` | `kind`, `handler` |
 * | `coracle_informer_watch_age_seconds` | `kind` |
 * | `coracle_informer_objects`, `coracle_informer_staleness_seconds` | `kind` |
 * | `coracle_kinds_followed`, `coracle_kinds_unread` | `controller` |
 * | `coracle_clusters`, `coracle_clusters_ready` | `controller`, `cluster` |
 * | `coracle_cluster_primaries`, `coracle_cluster_queue_depth` | `controller`, `cluster` |
 * | `coracle_cluster_reconciliations_active`, `coracle_cluster_failing_objects` | `controller`, `cluster` |
 * | `coracle_snapshot_restored_objects`, `coracle_snapshot_bytes`, `coracle_snapshot_age_seconds` | `kind` |
 * | `coracle_snapshot_refused_total` | `kind`, `reason` |
 * | `coracle_snapshot_errors_total` | `kind` |
 * | `coracle_cache_objects`, `coracle_cache_bytes` | `kind`, `tier` |
 * | `coracle_cache_used_bytes`, `coracle_cache_budget_bytes` | |
 * | `coracle_memory_used_bytes`, `coracle_memory_limit_bytes`, `coracle_memory_short` | |
 * | `coracle_client_requests_total` | `verb`, `code` |
 * | `coracle_client_request_duration_seconds` | `verb` |
 * | `coracle_webhooks_registered`, `coracle_webhook_certificate_expiration_timestamp_seconds` | |
 * | `coracle_webhook_refusals_total` | `status` |
 * | `coracle_admission_requests_total` | `kind`, `handler`, `operation`, `outcome` |
 * | `coracle_admission_duration_seconds` | `kind`, `handler` |
 *
 * @example Count and export
 * ```ts
 * import { MetricsRegistry } from "@coracle/operator/core";
 *
 * const registry = new MetricsRegistry();
 * const runs = registry.counter({ name: "runs_total", help: "Runs." });
 * runs.add(2, { result: "success" });
 * if (!registry.text().includes('runs_total{result="success"} 2')) {
 *   throw new Error("Unexpected text");
 * }
 * ```
 */
export class MetricsRegistry implements Metrics {
  readonly #families: Map<string, Family<unknown>> = new Map();

  /** Returns the counter of this name; the first call creates it. */
  counter(options: MetricOptions): Counter {
    return this.#family("counter", options, NumberFamily);
  }

  /** Returns the gauge of this name; the first call creates it. */
  gauge(options: MetricOptions): Gauge {
    return this.#family("gauge", options, NumberFamily);
  }

  /** Adds a gauge whose values a function reads at every export. */
  observableGauge(
    options: MetricOptions,
    observe: () => Iterable<Observation>,
  ): void {
    checkOption(observe, "function", {
      name: "observe",
      subject: "an observable gauge",
    });
    this.#family("gauge", options, ObservedFamily).observers.push(observe);
  }

  /** Returns the histogram of this name; the first call creates it. */
  histogram(
    options: MetricOptions & { readonly buckets?: readonly number[] },
  ): Histogram {
    return this.#family("histogram", options, HistogramFamily);
  }

  /** Returns all metrics in the text format of Prometheus, sorted by name. */
  text(): string {
    const families = [...this.#families.values()];
    families.sort((a, b) => a.name < b.name ? -1 : 1);
    return families.map((family) => family.text()).join("");
  }

  /** Returns the metric of a name; an existing one must have the same type. */
  #family<F extends Family<unknown>>(
    type: MetricType,
    options: FamilyOptions,
    Type: new (type: MetricType, options: FamilyOptions) => F,
  ): F {
    checkOption(options, "object", { name: "options", subject: `a ${type}` });
    const { buckets, ...named } = options;
    checkOptions(named, RULES, `a ${type}`);
    checkOption(buckets, "array?", { name: "buckets", subject: `a ${type}` });
    for (const name of options.labels ?? []) checkLabel(name, type);
    const present = this.#families.get(options.name);
    if (present?.type === type && present.constructor === Type) {
      return present as F;
    }
    if (present !== undefined || !NAME.test(options.name)) {
      throw new TypeError(
        `Cannot make a ${type}: ${
          present
            ? `the name is taken by a ${present.type}`
            : "the name is not valid"
        }: received "${options.name}"`,
      );
    }
    const family = new Type(type, options);
    this.#families.set(options.name, family);
    return family;
  }
}

/** All time series of a metric: their values by their labels. */
abstract class Family<V> {
  readonly name: string;
  readonly type: MetricType;
  readonly #help: string;
  readonly #byText: Map<string, V> = new Map();
  /** Values by the identity of the labels, which saves formatting them. */
  #byObject: WeakMap<MetricLabels, V> = new WeakMap();
  /** Frozen labels that were used last, and their value. */
  #last: { readonly labels: MetricLabels; readonly value: V } | undefined;

  constructor(type: MetricType, { name, help }: FamilyOptions) {
    this.type = type;
    this.name = name;
    this.#help = help;
  }

  remove(labels: MetricLabels = NO_LABELS): void {
    this.#byObject = new WeakMap(); // Equal labels may be other objects.
    this.#last = undefined;
    this.#byText.delete(labelsText(labels));
  }

  /** Removes all time series. */
  protected clear(): void {
    this.#byText.clear();
    this.#byObject = new WeakMap();
    this.#last = undefined;
  }

  text(): string {
    const help = this.#help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
    const lines = Array.from(
      this.#byText,
      ([labels, value]) => this.lines(labels, value),
    );
    return `# HELP ${this.name} ${help}\n# TYPE ${this.name} ${this.type}\n` +
      lines.join("");
  }

  /** Value of a time series; the first call creates it. */
  protected valueOf(labels: MetricLabels): V {
    if (this.#last?.labels === labels) return this.#last.value;
    let value = this.#byObject.get(labels);
    if (value !== undefined) {
      this.#last = { labels, value };
      return value;
    }
    const text = labelsText(labels);
    value = this.#byText.get(text) ?? this.create();
    this.#byText.set(text, value);
    // Only labels that cannot change may be found by their identity.
    if (Object.isFrozen(labels)) this.#byObject.set(labels, value);
    return value;
  }

  protected abstract create(): V;

  protected abstract lines(labels: string, value: V): string;
}

class NumberFamily extends Family<{ value: number }> implements Counter, Gauge {
  add(value: number, labels: MetricLabels = NO_LABELS): void {
    if (this.type === "counter" && !(value >= 0)) {
      throw new RangeError(
        `Cannot add to the counter ${this.name}: it only grows: received ${value}`,
      );
    }
    this.valueOf(labels).value += value;
  }

  set(value: number, labels: MetricLabels = NO_LABELS): void {
    this.valueOf(labels).value = value;
  }

  protected create(): { value: number } {
    return { value: 0 };
  }

  protected lines(labels: string, { value }: { value: number }): string {
    return `${this.name}${braced(labels)} ${numberText(value)}\n`;
  }
}

/** Gauge whose time series are read again at every export. */
class ObservedFamily extends NumberFamily {
  readonly observers: (() => Iterable<Observation>)[] = [];

  override text(): string {
    this.clear();
    for (const observe of this.observers) {
      // One that fails must not hide the other metrics.
      attempt(() => {
        for (const { value, labels } of observe()) this.set(value, labels);
      });
    }
    return super.text();
  }
}

/** Observations of one time series of a histogram. */
interface Buckets {
  readonly counts: Float64Array;
  sum: number;
}

class HistogramFamily extends Family<Buckets> implements Histogram {
  readonly #bounds: readonly number[];

  constructor(type: MetricType, options: FamilyOptions) {
    super(type, options);
    this.#bounds = [...options.buckets ?? BUCKETS].sort((a, b) => a - b);
  }

  observe(value: number, labels: MetricLabels = NO_LABELS): void {
    const series = this.valueOf(labels);
    let bucket = 0;
    while (value > (this.#bounds[bucket] ?? Infinity)) bucket++;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  protected create(): Buckets {
    // One more bucket for values above all bounds.
    return { counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
  }

  protected lines(labels: string, { counts, sum }: Buckets): string {
    const comma = labels === "" ? "" : ",";
    let text = "";
    let count = 0;
    for (const [index, inBucket] of counts.entries()) {
      count += inBucket;
      const bound = numberText(this.#bounds[index] ?? Infinity);
      text += `${this.name}_bucket{${labels}${comma}le="${bound}"} ${count}\n`;
    }
    return text +
      `${this.name}_sum${braced(labels)} ${numberText(sum)}\n` +
      `${this.name}_count${braced(labels)} ${count}\n`;
  }
}

/**
 * Checks the name of a label: Prometheus reads no metric at all from an export with
 * one that is not valid.
 */
function checkLabel(name: unknown, type = ""): void {
  const isTaken = type === "histogram" && name === "le";
  if (typeof name === "string" && LABEL.test(name) && !isTaken) return;
  throw new TypeError(
    `Cannot label a metric: ${
      isTaken
        ? "the buckets of a histogram have this label"
        : "the name of a label has letters, digits and _, and no digit first"
    }: received ${JSON.stringify(name)}`,
  );
}

function labelsText(labels: MetricLabels): string {
  const names = Object.keys(labels).sort();
  for (const name of names) checkLabel(name);
  return names.map((name) =>
    `${name}="${
      String(labels[name]).replaceAll("\\", "\\\\").replaceAll('"', '\\"')
        .replaceAll("\n", "\\n")
    }"`
  ).join(",");
}

function braced(labels: string): string {
  return labels === "" ? "" : `{${labels}}`;
}

function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  // What is no number would make the whole export unreadable.
  return value === -Infinity ? "-Inf" : String(Number(value));
}
