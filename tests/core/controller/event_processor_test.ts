import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyCap } from "../../../core/controller/concurrency_cap.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import { DONE, FAILED, ProcessorCase } from "../../support/processor_case.ts";

const A = "default/a";
const B = "default/b";

async function running(
  options: ConstructorParameters<typeof ProcessorCase>[0] = {},
): Promise<ProcessorCase> {
  const made = new ProcessorCase(options);
  made.processor.resume();
  await made.settle();
  return made;
}

test("EventProcessor runs once for many events, and once more for those during a run", async () => {
  const one = await running();
  one.add(A);
  one.update(A);
  await one.settle();
  assert.deepEqual(one.keys, [A]);
  assert.deepEqual(one.begun[0]?.cause, { type: "added", events: 2 });
  one.update(A);
  one.update(A);
  await one.settle();
  assert.equal(one.begun[0]?.isDirty(), true);
  await one.end(A);
  assert.deepEqual(one.keys, [A, A]);
  assert.equal(one.begun[1]?.cause.type, "modified");
  await one.end(A);
  assert.equal(one.processor.running, 0);
});

test("EventProcessor runs nothing before it is resumed, and loses nothing [3.2.3]", async () => {
  const one = new ProcessorCase();
  one.add(A, { initial: true });
  one.add(B);
  await one.settle();
  assert.deepEqual(one.keys, []);
  one.processor.resume();
  await one.settle();
  assert.deepEqual(one.keys, [B, A], "a live change goes first");
  assert.equal(one.begun[1]?.cause.type, "initial");
});

test("EventProcessor never runs two incarnations of one name at once [3.9.0]", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  const old = one.begun[0];
  one.delete(A);
  one.add(A);
  await one.settle();
  assert.equal(one.begun.length, 1, "the new incarnation waits");
  assert.equal(old?.aborted, "deletion");
  await one.end(A, { end: { type: "done", delay: 1_000 } });
  assert.equal(one.begun.length, 2);
  assert.notEqual(
    one.begun[1]?.primary.metadata.uid,
    old?.primary.metadata.uid,
  );
  await one.end(A);
  await one.clock.advance(5_000);
  assert.equal(one.begun.length, 2, "what the old run asked for is void");
});

test("EventProcessor keeps nothing of an object that was deleted during its run [3.9.0]", async () => {
  for (
    const result of [
      DONE,
      FAILED,
      { end: { type: "finalizerRemoved" } } as const,
    ]
  ) {
    const one = await running();
    one.add(A);
    await one.settle();
    one.delete(A);
    await one.end(A, result);
    assert.equal(one.processor.delayed, 0);
    assert.equal(one.processor.waiting, 0);
    assert.equal(one.processor.stateOf(A).leaving, false);
    assert.equal(one.clock.pendingTimers, 0);
    assert.deepEqual(one.plans, [undefined]);
  }
});

test("EventProcessor takes what waits for a deleted object out of the queue [3.9.10]", async () => {
  const one = await running({ settings: { concurrency: 1 } });
  one.add(A);
  one.add(B);
  await one.settle();
  assert.equal(one.processor.waiting, 1);
  one.delete(B);
  assert.equal(one.processor.waiting, 0);
  await one.end(A);
  assert.deepEqual(one.keys, [A]);
});

test("EventProcessor submits an object again whose run ended while it was paused [3.9.1]", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  one.processor.pause();
  await one.end(A);
  one.processor.resume();
  one.update(A);
  await one.settle();
  assert.deepEqual(one.keys, [A, A]);
});

test("EventProcessor runs an aborted object again when it is resumed [3.9.2]", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  one.processor.pause();
  one.processor.abortAll("leadership");
  assert.equal(one.begun[0]?.aborted, "leadership");
  await one.end(A, FAILED);
  assert.equal(one.begun.length, 1);
  one.processor.resume();
  await one.settle();
  assert.equal(one.begun.length, 2);
  assert.equal(one.begun[1]?.retry.attempt, 0, "that was no failure");
});

test("EventProcessor keeps a slow controller from starving others [3.9.3]", async () => {
  const cap = new ConcurrencyCap(3);
  const slow = await running({ cap, settings: { concurrency: 2 } });
  const quick = await running({ cap, clock: slow.clock });
  for (let index = 0; index < 10; index++) slow.add(`default/slow-${index}`);
  await slow.settle();
  quick.add(A);
  quick.add(B);
  await slow.settle();
  assert.equal(slow.open.size, 2);
  assert.equal(quick.open.size, 1);
  await quick.end(A);
  assert.deepEqual(quick.keys, [A, B]);
});

test("ConcurrencyCap gives room to each in turn", async () => {
  const cap = new ConcurrencyCap(1);
  const first = await running({ cap });
  const second = await running({ cap, clock: first.clock });
  for (let index = 0; index < 3; index++) {
    first.add(`default/first-${index}`);
    second.add(`default/second-${index}`);
  }
  await first.settle();
  const order: string[] = [];
  for (let index = 0; index < 6; index++) {
    const busy = first.open.size > 0 ? first : second;
    const [key] = busy.open.keys();
    order.push((key as string).slice(8, -2));
    await busy.end(key as string);
  }
  assert.deepEqual(order.toSorted(), [
    ...Array(3).fill("first"),
    ...Array(3).fill("second"),
  ]);
  assert.ok(order.slice(0, 3).includes("second"), order.join());
  assert.equal(cap.running, 0);
  assert.throws(() => new ConcurrencyCap(0), RangeError);
});

test("EventProcessor makes exhaustion a state that can be seen, and goes on by interval [3.9.4] [MaxIntervalAfterRetryIT]", async () => {
  const one = await running({
    settings: { retry: { maxAttempts: 1, jitter: 0 }, maxInterval: "1h" },
  });
  one.script = () => FAILED;
  one.add(A);
  await one.clock.advance(2_000);
  assert.equal(one.begun.length, 2);
  assert.equal(one.begun[1]?.retry.last, true);
  assert.equal(one.processor.exhausted, 1);
  await one.clock.advance(3_600_000);
  assert.equal(one.begun.length, 3);
  assert.equal(one.begun[2]?.cause.type, "interval");
  one.script = () => DONE;
  one.update(A);
  await one.clock.advance(10_000);
  assert.equal(one.processor.exhausted, 0);
});

test("EventProcessor visits an object as asked although an event came meanwhile [3.9.5]", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  one.update(A);
  await one.end(A, { end: { type: "done", delay: 10_000 } });
  await one.end(A);
  await one.clock.advance(9_999);
  assert.equal(one.begun.length, 2);
  await one.clock.advance(1);
  assert.equal(one.begun.length, 3);
  assert.equal(one.begun[2]?.cause.type, "reschedule");
});

test("EventProcessor is not driven in a hot loop by events and failures [3.9.5]", async () => {
  const one = await running();
  one.script = () => FAILED;
  one.add(A);
  for (let step = 0; step < 100; step++) {
    await one.clock.advance(10);
    one.update(A);
  }
  assert.ok(one.begun.length <= 5, `${one.begun.length} runs in a second`);
});

test("EventProcessor forgets objects whose namespace is not watched any more [3.9.6]", async () => {
  const one = await running();
  one.script = () => FAILED;
  one.add(A);
  await one.settle();
  assert.equal(one.processor.stateOf(A).failures, 1);
  one.primaries.delete(A);
  one.processor.forget(A, "namespace");
  assert.equal(one.processor.stateOf(A).failures, 0);
  assert.equal(one.clock.pendingTimers, 0);
});

test("EventProcessor does not measure by the calendar [3.9.7]", async () => {
  const clock = new VirtualClock();
  let calendar = 0;
  // Whenever somebody looks, it has been set back by a day.
  Object.assign(clock, { wallTime: () => calendar -= 86_400_000 });
  const one = await running({ clock, settings: { rateLimit: { limit: 1 } } });
  one.script = () => DONE;
  one.add(A);
  await one.settle();
  for (let step = 0; step < 5; step++) one.update(A);
  await one.clock.advance(9_999);
  assert.equal(one.begun.length, 1);
  await one.clock.advance(1);
  assert.equal(one.begun.length, 2, "[RateLimitIT]");
  assert.equal(one.begun[1]?.cause.events, 5);
  one.script = (run) => run.retry.attempt === 0 ? FAILED : DONE;
  await one.clock.advance(10_000);
  one.update(A);
  await one.clock.advance(10_000);
  assert.deepEqual(one.begun.slice(2).map(({ retry }) => retry.attempt), [
    0,
    1,
  ]);
});

test("EventProcessor frees a timer with its object [3.9.8]", async () => {
  const one = await running();
  one.script = () => DONE;
  for (let round = 0; round < 100; round++) {
    one.add(A);
    await one.settle();
    assert.equal(one.processor.delayed, 1);
    one.delete(A);
    assert.equal(one.processor.delayed, 0);
  }
  assert.equal(one.clock.pendingTimers, 0);
});

test("EventProcessor retries with growing pauses until a run succeeds [RetryIT]", async () => {
  const one = await running();
  let failures = 3;
  one.script = () => failures-- > 0 ? FAILED : DONE;
  one.add(A);
  await one.clock.advance(60_000);
  assert.deepEqual(one.begun.map((run) => run.startedAt), [
    0,
    2_000,
    5_000,
    9_500,
  ]);
  assert.deepEqual(one.begun.map((run) => run.retry.attempt), [0, 1, 2, 3]);
  assert.deepEqual(
    one.begun.map((run) => run.cause.type),
    ["added", "retry", "retry", "retry"],
  );
});

test("EventProcessor runs at the latest after the maximal interval [MaxIntervalIT]", async () => {
  const one = await running({ settings: { maxInterval: "50ms" } });
  one.script = () => DONE;
  one.add(A);
  await one.clock.advance(500);
  assert.equal(one.begun.length, 11);
  const never = await running({ settings: { maxInterval: false } });
  never.script = () => DONE;
  never.add(A);
  await never.clock.advance(1e9);
  assert.equal(never.begun.length, 1);
  assert.equal(never.processor.delayed, 0);
});

test("EventProcessor aborts a run when its time is over, and counts a failure", async () => {
  const one = await running({ settings: { timeout: "5s" } });
  one.add(A);
  await one.clock.advance(4_999);
  const [run] = one.begun;
  assert.equal(run?.signal.aborted, false);
  await one.clock.advance(1);
  assert.equal(run?.signal.aborted, true);
  assert.match(String(run?.signal.reason), /took longer than its timeout/);
  await one.end(A, FAILED);
  assert.equal(one.plans[0]?.failure, "retry");
});

test("EventProcessor aborts a reconcile when its object is marked, not a cleanup", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  one.mark(A);
  assert.equal(one.begun[0]?.signal.aborted, true);
  await one.end(A, FAILED);
  assert.equal(one.begun.length, 2);
  assert.equal(one.begun[1]?.retry.attempt, 0);
  one.update(A);
  assert.equal(one.begun[1]?.signal.aborted, false);
});

test("EventProcessor ignores an object whose finalizer is gone until it is a new one", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  await one.end(A, { end: { type: "finalizerRemoved" } });
  one.processor.triggered(A, "source", {});
  one.mark(A);
  await one.settle();
  assert.equal(one.begun.length, 1);
  one.delete(A);
  one.add(A);
  await one.settle();
  assert.equal(one.begun.length, 2);
});

test("EventProcessor cleans up once, whatever comes while the finalizer is being removed", async () => {
  const one = await running();
  const object = one.add(A);
  one.mark(A);
  await one.settle();
  one.processor.triggered(A, "source", {});
  one.update(A);
  // The cache shows the object as it was until the watch tells of its end.
  await one.end(A, { end: { type: "finalizerRemoved" } });
  assert.equal(one.begun.length, 1);
  assert.equal(one.processor.waiting, 0);
  one.delete(A);
  const remade = one.add(A);
  await one.settle();
  assert.equal(one.begun.length, 2);
  assert.notEqual(remade.metadata.uid, object.metadata.uid);
});

test("EventProcessor tells which source and object caused a run", async () => {
  const one = await running();
  one.script = () => DONE;
  one.add(A);
  await one.settle();
  const object = { namespace: "default", name: "pod" };
  one.processor.triggered(A, "pods", { kind: "Pod", object });
  one.processor.triggered("default/unknown", "pods", {});
  await one.settle();
  assert.deepEqual(one.begun[1]?.cause, {
    type: "source",
    source: "pods",
    kind: "Pod",
    object,
    events: 1,
  });
  assert.equal(one.begun.length, 2);
});

test("EventProcessor hands a deletion to reconcile in all-events mode, and retries it [TriggerReconcilerOnAllEventIT]", async () => {
  const one = await running({ settings: { allEvents: true } });
  one.script = (run) => run.deleted && run.retry.attempt < 2 ? FAILED : DONE;
  one.add(A);
  await one.settle();
  one.delete(A);
  await one.clock.advance(60_000);
  assert.deepEqual(
    one.begun.map((run) => [run.deleted, run.retry.attempt]),
    [[false, 0], [true, 0], [true, 1], [true, 2]],
  );
  assert.deepEqual(one.forgotten, [A]);
  assert.equal(one.processor.delayed, 0);
});

test("EventProcessor reconciles a new incarnation after the deletion of the old one in all-events mode", async () => {
  const one = await running({ settings: { allEvents: true } });
  one.add(A);
  await one.settle();
  await one.end(A);
  one.delete(A);
  await one.settle();
  one.add(A);
  await one.settle();
  assert.equal(one.begun.length, 2);
  await one.end(A);
  assert.deepEqual(one.begun.map((run) => run.deleted), [false, true, false]);
  await one.end(A);
  assert.equal(one.begun.length, 3);
});

test("EventProcessor keeps to the throughput of its controller", async () => {
  const one = await running({
    settings: { throughput: { limit: 2, period: "1s" }, concurrency: 100 },
  });
  one.script = () => DONE;
  for (let index = 0; index < 10; index++) one.add(`default/${index}`);
  await one.settle();
  assert.equal(one.begun.length, 2);
  await one.clock.advance(2_000);
  assert.equal(one.begun.length, 6);
  await one.clock.advance(2_000);
  assert.equal(one.begun.length, 10);
});
