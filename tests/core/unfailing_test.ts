import assert from "node:assert/strict";
import { test } from "node:test";
import {
  jsonLogger,
  type Logger,
  type Metrics,
} from "@coracle/operator/client";
import type { Tracer } from "@coracle/operator/core";
import { unfailingLogger } from "../../core/logger.ts";
import { unfailingMetrics } from "../../core/metrics.ts";
import { inSpan, spanHeaders } from "../../core/tracing.ts";
import { withInformer } from "../support/informer_case.ts";
import { errorEvent } from "../support/watch_faults.ts";

function fail(): never {
  throw new Error("As asked");
}

const throwingLogger: Logger = {
  debug: fail,
  info: fail,
  warn: fail,
  error: fail,
  with: () => throwingLogger,
};

const throwingMetrics: Metrics = {
  counter: () => ({ add: fail, remove: fail }),
  observableGauge() {},
  gauge: () => ({ set: fail, add: fail, remove: fail }),
  histogram: () => ({ observe: fail, remove: fail }),
};

test("unfailingLogger passes lines on and drops what cannot be written", () => {
  const lines: string[] = [];
  const write = (line: string) => {
    if (line.includes("bad")) fail();
    lines.push(line);
  };
  const log = unfailingLogger(jsonLogger({ write })).with({ by: "test" });
  log.info("bad");
  log.info("good");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /"good","by":"test"/);
  assert.equal(unfailingLogger(log), log);
  unfailingLogger({ ...throwingLogger, with: fail }).with({}).error("lost");
});

test("unfailingMetrics drops what cannot be counted", () => {
  const metrics = unfailingMetrics(throwingMetrics);
  const options = { name: "a", help: "A." };
  metrics.counter(options).add(1);
  metrics.gauge(options).set(1);
  metrics.gauge(options).add(1);
  metrics.gauge(options).remove();
  metrics.histogram(options).observe(1);
});

test("jsonLogger writes the other fields beside one that is a circle", () => {
  const lines: string[] = [];
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  jsonLogger({ write: (line) => lines.push(line) })
    .error("Failed", { error: circle, object: "default/a" });
  const line = JSON.parse(lines[0] ?? "");
  assert.equal(line.object, "default/a");
  assert.equal(line.error, "[object Object]");
});

test("Informer goes on whatever logger, metrics and handlers throw", () =>
  withInformer(async (parts) => {
    const { server, informer } = parts;
    informer.addHandler(fail);
    informer.addHandler(() => Promise.reject(new Error("As asked")));
    server.put("default/a");
    await parts.sync();
    server.script("watch", errorEvent(410, "Expired"));
    server.endWatches();
    server.put("default/b");
    await parts.settled();
    assert.equal(informer.size, 2);
  }, { logger: throwingLogger, metrics: throwingMetrics }));

test("inSpan gives what the work gives, whatever the tracer throws", async () => {
  const brokenSpan = {
    spanContext: fail,
    setAttribute: fail,
    setStatus: fail,
    recordException: fail,
    end: fail,
  };
  const broken: readonly Tracer[] = [
    { startActiveSpan: fail },
    { startActiveSpan: (_name, _options, work) => work(brokenSpan) },
  ];
  for (const tracer of broken) {
    let calls = 0;
    const result = await inSpan<number>(tracer, "work", {
      onResult: (span) => void span.setAttribute("a", 1),
      work: (span) => {
        assert.deepEqual(spanHeaders(span), {});
        return Promise.resolve(++calls);
      },
    });
    assert.equal(result, 1);
    assert.throws(
      () =>
        inSpan(tracer, "work", {
          work: () => {
            throw new RangeError("its own");
          },
        }),
      RangeError,
    );
  }
});
