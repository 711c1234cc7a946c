/**
 * Loggers and metrics of users, kept from harming what only tells by them. A
 * watch or an election that ended because a log line could not be written would
 * end without a word.
 *
 * @module
 */
import { type Logger, silentLogger } from "./logger.ts";
import {
  type Counter,
  type Gauge,
  type Histogram,
  type Metrics,
  noMetrics,
} from "./metrics.ts";

/** Those made here, which need no second cover. */
const made: WeakSet<object> = new WeakSet<object>([silentLogger, noMetrics]);

/** A logger that never throws: lines that cannot be written are lost. */
export function unfailingLogger(logger: Logger): Logger {
  if (made.has(logger)) return logger;
  const covered: Logger = {
    debug: (message, fields) => attempt(() => logger.debug(message, fields)),
    info: (message, fields) => attempt(() => logger.info(message, fields)),
    warn: (message, fields) => attempt(() => logger.warn(message, fields)),
    error: (message, fields) => attempt(() => logger.error(message, fields)),
    with(fields) {
      let narrower: Logger = covered;
      attempt(() => narrower = unfailingLogger(logger.with(fields)));
      return narrower;
    },
  };
  made.add(covered);
  return covered;
}

/**
 * Metrics that never throw once they are made: what cannot be counted is lost.
 * Making one may throw, since a name that is taken is a mistake to be told.
 */
export function unfailingMetrics(metrics: Metrics): Metrics {
  if (made.has(metrics)) return metrics;
  const covered: Metrics = {
    counter: (options) => unfailingCounter(metrics.counter(options)),
    gauge: (options) => unfailingGauge(metrics.gauge(options)),
    histogram: (options) => unfailingHistogram(metrics.histogram(options)),
  };
  made.add(covered);
  return covered;
}

function unfailingCounter(counter: Counter): Counter {
  return {
    add: (value, labels) => attempt(() => counter.add(value, labels)),
  };
}

function unfailingGauge(gauge: Gauge): Gauge {
  return {
    set: (value, labels) => attempt(() => gauge.set(value, labels)),
    add: (value, labels) => attempt(() => gauge.add(value, labels)),
    remove: (labels) => attempt(() => gauge.remove(labels)),
  };
}

function unfailingHistogram(histogram: Histogram): Histogram {
  return {
    observe: (value, labels) => attempt(() => histogram.observe(value, labels)),
  };
}

function attempt(tell: () => void): void {
  try {
    tell();
  } catch {
    // There is nobody left to tell.
  }
}
