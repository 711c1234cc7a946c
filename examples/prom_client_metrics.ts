/**
 * Metrics of an operator in a registry of prom-client, beside those of the
 * program.
 *
 * @module
 */
import type { Metrics, Observation } from "@coracle/operator/core";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Functions that read the values of the observable gauges, by name. */
type Observers = Map<string, (() => Iterable<Observation>)[]>;

/** Makes the metrics of an operator: `new Operator({ metrics: … })`. */
export function promClientMetrics(registry: Registry): Metrics {
  const registers = [registry];
  const observers: Observers = new Map();
  /** Metric of a name; a second controller gets that of the first. */
  const once = <M>(name: string, make: () => M): M =>
    registry.getSingleMetric(name) as M | undefined ?? make();

  return {
    counter({ name, help, labels = [] }) {
      const options = { name, help, labelNames: [...labels], registers };
      const counter = once(name, () => new Counter(options));
      return {
        add: (value, labels = {}) => counter.inc(labels, value),
        remove: (labels = {}) => counter.remove(labels),
      };
    },

    gauge({ name, help, labels = [] }) {
      const options = { name, help, labelNames: [...labels], registers };
      const gauge = once(name, () => new Gauge(options));
      return {
        set: (value, labels = {}) => gauge.set(labels, value),
        add: (value, labels = {}) => gauge.inc(labels, value),
        remove: (labels = {}) => gauge.remove(labels),
      };
    },

    observableGauge({ name, help, labels = [] }, observe) {
      const all = observers.get(name) ?? [];
      observers.set(name, [...all, observe]);
      const options = { name, help, labelNames: [...labels], registers };
      once(name, () =>
        new Gauge({
          ...options,
          collect() {
            this.reset(); // A series that is not observed does not exist.
            for (const observe of observers.get(name) ?? []) {
              for (const { value, labels = {} } of observe()) {
                this.set(labels, value);
              }
            }
          },
        }));
    },

    histogram({ name, help, labels = [], buckets }) {
      const options = { name, help, labelNames: [...labels], registers };
      const bounds = buckets && { buckets: [...buckets] };
      const histogram = once(
        name,
        () => new Histogram({ ...options, ...bounds }),
      );
      return {
        observe: (value, labels = {}) => histogram.observe(labels, value),
        remove: (labels = {}) => histogram.remove(labels),
      };
    },
  };
}
