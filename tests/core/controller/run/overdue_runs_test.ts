import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type Duration,
  type LogFields,
  silentLogger,
} from "@coracle/operator/client";
import { OverdueRuns } from "../../../../core/controller/run/run_observers.ts";
import {
  DONE,
  type Gadget,
  ProcessorFixture,
} from "../../../support/processor_fixture.ts";

const KEY = "default/web";

/** Event processor whose runs are observed, with the warnings about them. */
function observed(settings: { readonly timeout?: Duration } = {}) {
  const clock = new VirtualClock();
  const warned: LogFields[] = [];
  const overdue = new OverdueRuns<Gadget>({
    clock,
    log: {
      ...silentLogger,
      warn: (_message, fields = {}) => warned.push(fields),
    },
  });
  const fixture = new ProcessorFixture({
    clock,
    settings,
    observers: [overdue],
  });
  fixture.processor.resume();
  return { fixture, clock, overdue, warned };
}

test("OverdueRuns warns ten seconds after an abort, then with growing pauses", async () => {
  const { fixture, clock, overdue, warned } = observed({ timeout: "30s" });
  fixture.add(KEY);
  await clock.advance(39_999);
  assert.deepEqual({ warned, overdue: overdue.size }, {
    warned: [],
    overdue: 0,
  });
  assert.deepEqual(overdue.of(KEY), { because: "timeout", ago: 9_999 });

  await clock.advance(1);
  const first = { object: KEY, because: "timeout" };
  assert.deepEqual(warned, [
    { ...first, abortedFor: 10_000, runningFor: 40_000 },
  ]);
  assert.equal(overdue.size, 1);
  await clock.advance(8 * 3_600_000);
  const minutes = warned.map(({ abortedFor }) =>
    Math.round(Number(abortedFor) / 6_000) / 10
  );
  assert.deepEqual(minutes, [
    ...[0.2, 0.5, 1.2, 2.5, 5.2, 10.5, 21.2, 42.5, 85.2],
    ...[145.2, 205.2, 265.2, 325.2, 385.2, 445.2],
  ]);

  await fixture.end(KEY);
  assert.equal(overdue.size, 0);
  assert.equal(overdue.of(KEY), undefined);
  const before = warned.length;
  await clock.advance(8 * 3_600_000);
  assert.equal(warned.length, before, "the warnings end with the run");
});

test("OverdueRuns names the cause of the abort in its warning", async () => {
  const { fixture, clock, warned } = observed();
  for (const name of ["a", "b", "c"]) fixture.add(`default/${name}`);
  await fixture.settle();
  fixture.delete("default/a");
  fixture.processor.forget("default/b", "namespace");
  fixture.processor.abortAll("leadership");
  await clock.advance(10_000);
  assert.deepEqual(warned.map(({ object, because }) => [object, because]), [
    ["default/a", "deletion"],
    ["default/b", "namespace"],
    ["default/c", "leadership"],
  ]);
  for (const name of ["a", "b", "c"]) await fixture.end(`default/${name}`);
});

test("OverdueRuns has no warning and no timer for a run that reacts to its signal", async () => {
  const { fixture, clock, overdue, warned } = observed({ timeout: "30s" });
  fixture.script = (run) => {
    run.signal.addEventListener("abort", () => void fixture.end(KEY));
    return undefined;
  };
  fixture.add(KEY);
  await clock.advance(30_000);
  fixture.script = () => DONE;
  fixture.delete(KEY);
  await clock.advance(60_000);
  assert.deepEqual(warned, []);
  assert.equal(overdue.size, 0);
  assert.equal(clock.pendingTimers, 0);
});

test("OverdueRuns counts runs after it is closed, without timers", async () => {
  const { fixture, clock, overdue, warned } = observed({ timeout: "1h" });
  fixture.add(KEY);
  fixture.add("default/other");
  await fixture.settle();
  fixture.open.get(KEY)!.run.abort("shutdown");
  overdue.close();
  fixture.open.get("default/other")!.run.abort("shutdown");
  fixture.processor.clear();
  assert.equal(
    clock.pendingTimers,
    0,
    "the timeouts of the runs are cancelled",
  );
  await clock.advance(3_600_000);
  assert.deepEqual(warned, []);
  assert.equal(overdue.size, 2);
});
