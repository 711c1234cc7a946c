import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyCap } from "../../../core/controller/concurrency_cap.ts";
import {
  DONE,
  FAILED,
  ProcessorCase,
  running,
} from "../../support/processor_case.ts";

const A = "default/a";
const B = "default/b";

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
