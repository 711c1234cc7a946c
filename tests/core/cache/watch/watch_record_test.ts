import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { MetricsRegistry, silentLogger } from "@coracle/operator/core";
import {
  InformerMetrics,
  WatchRecord,
} from "../../../../core/cache/watch/watch_record.ts";

function record() {
  const clock = new VirtualClock();
  const registry = new MetricsRegistry();
  const metrics = new InformerMetrics(registry, "v1 Pod");
  const watch = new WatchRecord({
    namespace: "default",
    clock,
    log: silentLogger,
    metrics,
  });
  const value = (name: string) =>
    Number(
      new RegExp(`^coracle_informer_${name}.* (\\S+)$`, "m")
        .exec(registry.text())?.[1] ?? 0,
    );
  return { clock, metrics, watch, value };
}

test("InformerMetrics counts each change once, however often it is flushed", () => {
  const { metrics, value } = record();
  for (const type of ["added", "added", "updated", "deleted"] as const) {
    metrics.change(type);
  }
  metrics.flush();
  metrics.flush();
  assert.equal(value('events_total\\{.*type="added"'), 2);
  assert.equal(value('events_total\\{.*type="deleted"'), 1);
  assert.equal(value("objects"), 1);
});

test("WatchRecord measures the age of an open watch, in seconds in the metrics", async () => {
  const { clock, watch, value } = record();
  watch.watchClosed();
  assert.equal(watch.health().watchAge, undefined);
  watch.watchOpened();
  await clock.advance(3_000);
  assert.equal(watch.health().watchAge, 3_000);
  watch.watchClosed();
  watch.watchClosed();
  assert.equal(watch.health().watchAge, undefined);
  assert.equal(value("watch_age_seconds_sum"), 3);
  assert.equal(value("watch_age_seconds_count"), 1);
});

test("WatchRecord counts a relist from the second whole state on", () => {
  const { watch, value } = record();
  watch.stateBegun();
  watch.stateBegun();
  assert.equal(watch.health().relists, 0, "the first one was not read");
  watch.stateRead();
  watch.stateBegun();
  assert.equal(watch.health().relists, 1);
  assert.equal(value("relists_total"), 1);
});

test("WatchRecord tells the time of the day of contacts and failures", async () => {
  const { clock, watch } = record();
  await clock.advance(5_000);
  watch.contact();
  watch.failed(new Error("reset"), "connection", "watch v1 Pod");
  const { lastContact, lastError } = watch.health();
  assert.equal(lastContact, clock.wallTime());
  assert.notEqual(clock.wallTime(), clock.now());
  assert.deepEqual(lastError, {
    message: "Cannot watch v1 Pod: reset",
    at: clock.wallTime(),
  });
  watch.failed(new Error("Cannot watch v1 Pod: no"), "x", "watch v1 Pod");
  assert.equal(watch.health().lastError?.message, "Cannot watch v1 Pod: no");
});

test("WatchRecord counts failures until an event works", () => {
  const { watch } = record();
  watch.failed(new Error("Refused"), "refused", "watch v1 Pod");
  watch.failed("late", "silent");
  const { consecutiveFailures, errors, lastError } = watch.health();
  assert.deepEqual([consecutiveFailures, errors, lastError?.message], [
    2,
    2,
    "late",
  ]);
  watch.works();
  assert.equal(watch.health().consecutiveFailures, 0);
  assert.equal(watch.health().errors, 2);
});
