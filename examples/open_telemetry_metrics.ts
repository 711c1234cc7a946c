/**
 * Metrics of an operator as instruments of OpenTelemetry.
 *
 * @module
 */
import type { MetricLabels, Metrics } from "@coracle/operator/core";
import type { Meter } from "@opentelemetry/api";

/** Values of a gauge by their labels, until OpenTelemetry collects them. */
type Values = Map<
  string,
  { readonly labels: MetricLabels; readonly value: number }
>;

/** Makes the metrics of an operator: `new Operator({ metrics: … })`. */
export function openTelemetryMetrics(meter: Meter): Metrics {
  const gauges = new Map<string, Values>();
  return {
    counter({ name, help }) {
      const counter = meter.createCounter(name, { description: help });
      return {
        add: (value, labels) => counter.add(value, labels),
        remove() {}, // Its SDK goes on to export a series that has begun.
      };
    },

    gauge({ name, help }) {
      const values: Values = gauges.get(name) ?? new Map();
      if (!gauges.has(name)) {
        gauges.set(name, values);
        meter.createObservableGauge(name, { description: help })
          .addCallback((result) => {
            for (const { value, labels } of values.values()) {
              result.observe(value, labels);
            }
          });
      }
      const set = (value: number, labels: MetricLabels = {}) =>
        void values.set(JSON.stringify(labels), { labels, value });
      return {
        set,
        add(value, labels = {}) {
          const before = values.get(JSON.stringify(labels))?.value ?? 0;
          set(before + value, labels);
        },
        remove: (labels = {}) => void values.delete(JSON.stringify(labels)),
      };
    },

    observableGauge({ name, help }, observe) {
      meter.createObservableGauge(name, { description: help })
        .addCallback((result) => {
          for (const { value, labels } of observe()) {
            result.observe(value, labels);
          }
        });
    },

    histogram({ name, help, buckets }) {
      const advice = buckets && { explicitBucketBoundaries: [...buckets] };
      const histogram = meter.createHistogram(name, {
        description: help,
        ...(advice && { advice }),
      });
      return {
        observe: (value, labels) => histogram.record(value, labels),
        remove() {},
      };
    },
  };
}
