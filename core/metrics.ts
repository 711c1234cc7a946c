/** Label names and values of one time series. */
export type MetricLabels = Readonly<Record<string, string>>;

/** What a metric is called and means. */
export interface MetricOptions {
  /** Its name in Prometheus' convention, such as `coracle_queue_depth`. */
  readonly name: string;
  /** One sentence for a person. */
  readonly help: string;
}

/** A number that only grows. */
export interface Counter {
  /**
   * Adds to the series.
   *
   * @param value How much to add; not negative.
   * @param labels Which series.
   */
  add(value: number, labels?: MetricLabels): void;
}

/** A number that goes up and down. */
export interface Gauge {
  /** Sets the series to a value. */
  set(value: number, labels?: MetricLabels): void;
  /** Adds to the series; negative values take away. */
  add(value: number, labels?: MetricLabels): void;
  /** Forgets the series, for example when its controller is gone. */
  remove(labels?: MetricLabels): void;
}

/** Counts observations in buckets. */
export interface Histogram {
  /** Counts one observation, in the metric's unit. */
  observe(value: number, labels?: MetricLabels): void;
}

/**
 * Where the library counts what it does. The operator holds a real registry;
 * parts used alone take {@linkcode noMetrics} by default.
 */
export interface Metrics {
  /** The counter of this name, made when first asked for. */
  counter(options: MetricOptions): Counter;
  /** The gauge of this name, made when first asked for. */
  gauge(options: MetricOptions): Gauge;
  /** The histogram of this name, made when first asked for. */
  histogram(
    options: MetricOptions & { readonly buckets?: readonly number[] },
  ): Histogram;
}

const nothing: Counter & Gauge & Histogram = {
  add() {},
  set() {},
  remove() {},
  observe() {},
};

/** Metrics that count nothing. */
export const noMetrics: Metrics = {
  counter: () => nothing,
  gauge: () => nothing,
  histogram: () => nothing,
};
