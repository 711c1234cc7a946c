import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  Informer,
  type InformerClient,
  type Logger,
  MetricsRegistry,
  noMetrics,
  silentLogger,
} from "@coracle/operator/core";
import { Widget } from "../../../support/fake_watch_call.ts";
import { inTime } from "../../../support/in_time.ts";

/** Logger that notes its warnings, with all that is derived from it. */
function notingLogger(warn: (message: string) => void): Logger {
  const logger: Logger = { ...silentLogger, warn, with: () => logger };
  return logger;
}

/** Client whose requests all fail, and which counts them. */
function refusing(defaults: InformerClient["defaults"]) {
  const state = { requests: 0 };
  const client: InformerClient = {
    request: () => {
      state.requests++;
      return Promise.reject(new Error("nobody is there"));
    },
    resolve: () => Promise.reject(new Error("it is resolved")),
    ...(defaults && { defaults }),
  };
  return { client, state };
}

test("Informer takes clock, random, logger and metrics of its client", async () => {
  const clock = new VirtualClock();
  const metrics = new MetricsRegistry();
  const warnings: string[] = [];
  const logger = notingLogger((message) => void warnings.push(message));
  const { client, state } = refusing({
    clock,
    logger,
    metrics,
    random: () => 0,
  });
  const informer = new Informer(client, Widget).start();
  await clock.settle();
  assert.equal(state.requests, 1);
  assert.equal(warnings.length, 1);
  assert.match(metrics.text(), /coracle_informer_errors_total\{.*\} 1\n/);
  // Without a random part, the first pause is the shortest one.
  await clock.advance(799);
  assert.equal(state.requests, 1);
  await clock.advance(1);
  assert.equal(state.requests, 2);
  await informer.stop();
});

test("Informer prefers its own options to those of its client", async () => {
  const fail = () => {
    throw new Error("not this one");
  };
  const clock = new VirtualClock();
  const { client } = refusing({
    clock: { now: fail, wallTime: fail, setTimer: fail },
    random: fail,
    logger: notingLogger(fail),
    metrics: noMetrics,
  });
  const warnings: string[] = [];
  const logger = notingLogger((message) => void warnings.push(message));
  const options = { clock, logger, random: () => 0 };
  const informer = new Informer(client, Widget, options).start();
  await clock.settle();
  assert.equal(warnings.length, 1);
  await informer.stop();
});

test("Informer goes on although its logger and its metrics fail", async () => {
  const clock = new VirtualClock();
  const fail = () => {
    throw new Error("no disk");
  };
  const { client, state } = refusing({
    clock,
    random: () => 0,
    logger: { ...notingLogger(fail), error: fail },
    metrics: { ...noMetrics, counter: () => ({ add: fail, remove: fail }) },
  });
  const informer = new Informer(client, Widget).start();
  await clock.settle();
  await clock.advance(800);
  await clock.advance(1_600);
  assert.equal(state.requests, 3);
  await inTime("the stop", informer.stop());
});
