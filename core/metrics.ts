import { attempt } from "./callback.ts";
/** Label names and values of one time series. */
export type MetricLabels = Readonly<Record<string, string>>;

/** What a metric is registered with; a second registration of a name is the same metric. */
export interface MetricOptions {
  /** Name by the conventions of Prometheus, such as `coracle_queue_depth`. */
  readonly name: string;
  /** Description in one sentence, for the `HELP` line. */
  readonly help: string;
  /**
   * Names of the labels that each of its time series has, for registries that
   * must know them in advance, such as that of `prom-client`.
   *
   * @default {[]}
   */
  readonly labels?: readonly string[] | undefined;
}

/** Value of one time series at this moment. */
export interface Observation {
  /** Value, in the unit of the metric. */
  readonly value: number;
  /** Labels of the time series; none by default. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** A counter: a value that only grows. */
export interface Counter {
  /**
   * Adds to a time series.
   *
   * @param value The amount to add; not negative.
   * @param labels Labels of the time series.
   */
  add(value: number, labels?: Readonly<Record<string, string>>): void;
  /** Removes a time series, such as that of an object that is gone. */
  remove(labels?: Readonly<Record<string, string>>): void;
}

/** A gauge: a value that goes up and down. */
export interface Gauge {
  /** Sets the value of a time series. */
  set(value: number, labels?: Readonly<Record<string, string>>): void;
  /** Adds to a time series; negative amounts subtract. */
  add(value: number, labels?: Readonly<Record<string, string>>): void;
  /** Removes a time series, for example when its controller is unregistered. */
  remove(labels?: Readonly<Record<string, string>>): void;
}

/** A histogram: counts observations in buckets. */
export interface Histogram {
  /** Counts one observation, in the unit of the metric. */
  observe(value: number, labels?: Readonly<Record<string, string>>): void;
  /** Removes a time series, such as that of an object that is gone. */
  remove(labels?: Readonly<Record<string, string>>): void;
}

/**
 * A registry for the metrics of the library.
 *
 * An operator uses a `MetricsRegistry` by default; parts that are used alone
 * default to {@linkcode noMetrics}.
 */
export interface Metrics {
  /** Returns the counter of this name; the first call creates it. */
  counter(options: MetricOptions): Counter;
  /** Returns the gauge of this name; the first call creates it. */
  gauge(options: MetricOptions): Gauge;
  /**
   * Adds a gauge whose values a function reads whenever metrics are collected,
   * by whatever collects them, so that they cannot deviate from what they
   * measure. A time series that it does not return does not exist. The functions
   * of one name are called one after another, and their series shown together.
   *
   * @param observe Reads the values; it must not wait.
   */
  observableGauge(
    options: MetricOptions,
    observe: () => Iterable<Observation>,
  ): void;
  /** Returns the histogram of this name; the first call creates it. */
  histogram(
    options: MetricOptions & { readonly buckets?: readonly number[] },
  ): Histogram;
}

type AnyMetric = Counter & Gauge & Histogram;

const noMetric: AnyMetric = { add() {}, set() {}, remove() {}, observe() {} };

/** Metrics that count nothing. */
export const noMetrics: Metrics = {
  counter: () => noMetric,
  gauge: () => noMetric,
  observableGauge() {},
  histogram: () => noMetric,
};

/** Metrics that never throw, and need not be wrapped a second time. */
const unfailing: WeakSet<Metrics> = new WeakSet([noMetrics]);

/**
 * Wraps metrics of the user so that counting never throws: a value that
 * cannot be counted is lost. Creating a metric may throw, since a name that is
 * taken is a mistake of the program.
 */
export function unfailingMetrics(metrics: Metrics): Metrics {
  if (unfailing.has(metrics)) return metrics;
  const wrapped: Metrics = {
    counter: (options) => unfailingMetric(metrics.counter(options)),
    gauge: (options) => unfailingMetric(metrics.gauge(options)),
    observableGauge: (options, observe) =>
      metrics.observableGauge(options, observe),
    histogram: (options) => unfailingMetric(metrics.histogram(options)),
  };
  unfailing.add(wrapped);
  return wrapped;
}

/** Wrapped metrics by the metric: thousands of informers and controllers share them. */
const wrappers: WeakMap<Partial<AnyMetric>, AnyMetric> = new WeakMap();

/** Wraps a metric so that it never throws; it has only the methods of its type. */
function unfailingMetric(metric: Partial<AnyMetric>): AnyMetric {
  let wrapper = wrappers.get(metric);
  if (wrapper === undefined) wrappers.set(metric, wrapper = wrap(metric));
  return wrapper;
}

function wrap(metric: Partial<AnyMetric>): AnyMetric {
  return {
    add: (value, labels) => attempt(() => metric.add?.(value, labels)),
    set: (value, labels) => attempt(() => metric.set?.(value, labels)),
    remove: (labels) => attempt(() => metric.remove?.(labels)),
    observe: (value, labels) => attempt(() => metric.observe?.(value, labels)),
  };
}
