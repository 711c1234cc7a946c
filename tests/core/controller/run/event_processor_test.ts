import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyCap } from "../../../../core/controller/run/concurrency_cap.ts";
import {
  DONE,
  FAILED,
  ProcessorFixture,
  running,
} from "../../../support/processor_fixture.ts";

const A = "default/a";
const B = "default/b";

test("EventProcessor runs once for many events, and once for all during a run [J12]", async () => {
  const fixture = await running();
  fixture.add(A);
  fixture.update(A);
  await fixture.settle();
  assert.deepEqual(fixture.keys, [A]);
  assert.deepEqual(fixture.begun[0]?.cause, { type: "added", events: 2 });
  fixture.update(A);
  fixture.update(A);
  await fixture.settle();
  assert.equal(fixture.begun[0]?.hasNewEvent(), true);
  await fixture.end(A);
  assert.deepEqual(fixture.keys, [A, A]);
  assert.equal(fixture.begun[1]?.cause.type, "modified");
  await fixture.end(A);
  assert.equal(fixture.processor.running, 0);
});

test("EventProcessor runs nothing until it is resumed, and loses no event [3.2.3]", async () => {
  const fixture = new ProcessorFixture();
  fixture.add(A, { initial: true });
  fixture.add(B);
  await fixture.settle();
  assert.deepEqual(fixture.keys, []);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, [B, A], "a live change goes first");
  assert.equal(fixture.begun[1]?.cause.type, "initial");
});

test("EventProcessor never runs two objects of one name at the same time [3.9.0]", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  const old = fixture.begun[0];
  fixture.delete(A);
  fixture.add(A);
  await fixture.settle();
  assert.equal(fixture.begun.length, 1, "the new incarnation waits");
  assert.equal(old?.aborted, "deletion");
  await fixture.end(A, { end: { type: "done", delay: 1_000 } });
  assert.equal(fixture.begun.length, 2);
  assert.notEqual(
    fixture.begun[1]?.primary.metadata.uid,
    old?.primary.metadata.uid,
  );
  await fixture.end(A);
  await fixture.clock.advance(5_000);
  assert.equal(fixture.begun.length, 2, "what the old run asked for is void");
});

test("EventProcessor keeps no state of an object that was deleted during its run [3.9.0]", async () => {
  for (
    const result of [
      DONE,
      FAILED,
      { end: { type: "finalizerRemoved" } } as const,
    ]
  ) {
    const fixture = await running();
    fixture.add(A);
    await fixture.settle();
    fixture.delete(A);
    await fixture.end(A, result);
    assert.equal(fixture.processor.delayed, 0);
    assert.equal(fixture.processor.waiting, 0);
    assert.equal(fixture.processor.stateOf(A).leaving, false);
    assert.equal(fixture.clock.pendingTimers, 0);
    assert.deepEqual(fixture.plans, [undefined]);
  }
});

test("EventProcessor removes deleted objects from the queue [3.9.10]", async () => {
  const fixture = await running({ settings: { concurrency: 1 } });
  fixture.add(A);
  fixture.add(B);
  await fixture.settle();
  assert.equal(fixture.processor.waiting, 1);
  fixture.delete(B);
  assert.equal(fixture.processor.waiting, 0);
  await fixture.end(A);
  assert.deepEqual(fixture.keys, [A]);
});

test("EventProcessor runs an object again whose run ended while it was paused [3.9.1]", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  fixture.processor.pause();
  await fixture.end(A);
  fixture.processor.resume();
  fixture.update(A);
  await fixture.settle();
  assert.deepEqual(fixture.keys, [A, A]);
});

test("EventProcessor runs every primary again when it is resumed after a pause", async () => {
  const fixture = await running();
  fixture.script = () => DONE;
  fixture.add(A);
  fixture.add(B);
  await fixture.settle();
  for (const runs of [4, 6]) {
    fixture.processor.pause();
    fixture.processor.resume();
    await fixture.settle();
    assert.equal(fixture.begun.length, runs);
  }
});

test("EventProcessor runs an aborted object again when it is resumed [3.9.2]", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  fixture.processor.pause();
  fixture.processor.abortAll("leadership");
  assert.equal(fixture.begun[0]?.aborted, "leadership");
  await fixture.end(A, FAILED);
  assert.equal(fixture.begun.length, 1);
  fixture.processor.resume();
  await fixture.settle();
  assert.equal(fixture.begun.length, 2);
  assert.equal(fixture.begun[1]?.retry.attempt, 0, "that was no failure");
});

test("EventProcessor repeats a run that was aborted while its lease was in doubt", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  // The lease was in doubt, and was renewed before anyone noticed.
  fixture.begun[0]?.abort("leadership");
  await fixture.end(A, FAILED);
  assert.deepEqual(fixture.keys, [A, A]);
  assert.equal(fixture.begun[1]?.retry.attempt, 0, "that was no failure");
});

test("EventProcessor prevents that a slow controller starves others [3.9.3]", async () => {
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

test("ConcurrencyCap serves controllers in turn", async () => {
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

test("EventProcessor forgets objects of namespaces that are no longer watched [3.9.6]", async () => {
  const fixture = await running();
  fixture.script = () => FAILED;
  fixture.add(A);
  await fixture.settle();
  assert.equal(fixture.processor.stateOf(A).failures, 1);
  fixture.primaries.delete(A);
  fixture.processor.forget(A, "namespace");
  assert.equal(fixture.processor.stateOf(A).failures, 0);
  assert.equal(fixture.clock.pendingTimers, 0);
});

test("EventProcessor aborts a reconcile but not a cleanup when the deletion starts", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  fixture.mark(A);
  assert.equal(fixture.begun[0]?.signal.aborted, true);
  await fixture.end(A, FAILED);
  assert.equal(fixture.begun.length, 2);
  assert.equal(fixture.begun[1]?.retry.attempt, 0);
  fixture.update(A);
  assert.equal(fixture.begun[1]?.signal.aborted, false);
});

test("EventProcessor ignores an object without its finalizer until it is a new one [J20]", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, { end: { type: "finalizerRemoved" } });
  fixture.processor.onTrigger(A, "source", {});
  fixture.mark(A);
  await fixture.settle();
  assert.equal(fixture.begun.length, 1);
  fixture.delete(A);
  fixture.add(A);
  await fixture.settle();
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor cleans up once despite events during the removal of the finalizer", async () => {
  const fixture = await running();
  const object = fixture.add(A);
  fixture.mark(A);
  await fixture.settle();
  fixture.processor.onTrigger(A, "source", {});
  fixture.update(A);
  // The cache shows the old state until the event of the deletion arrives.
  await fixture.end(A, { end: { type: "finalizerRemoved" } });
  assert.equal(fixture.begun.length, 1);
  assert.equal(fixture.processor.waiting, 0);
  fixture.delete(A);
  const remade = fixture.add(A);
  await fixture.settle();
  assert.equal(fixture.begun.length, 2);
  assert.notEqual(remade.metadata.uid, object.metadata.uid);
});

test("EventProcessor passes the source and object to the cause of a run [J35]", async () => {
  const fixture = await running();
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  const object = { namespace: "default", name: "pod" };
  fixture.processor.onTrigger(A, "pods", { kind: "Pod", object });
  fixture.processor.onTrigger("default/unknown", "pods", {});
  await fixture.settle();
  assert.deepEqual(fixture.begun[1]?.cause, {
    type: "source",
    source: "pods",
    kind: "Pod",
    object,
    events: 1,
  });
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor does not call a secondary that existed at the start a change", async () => {
  const fixture = await running();
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  fixture.processor.onTrigger(A, "pods", { kind: "Pod", initial: true });
  await fixture.settle();
  assert.deepEqual(fixture.begun[1]?.cause, { type: "initial", events: 1 });
});

test("EventProcessor reconciles and retries a deletion in all-events mode [TriggerReconcilerOnAllEventIT]", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  fixture.script = (run) =>
    run.deleted && run.retry.attempt < 2 ? FAILED : DONE;
  fixture.add(A);
  await fixture.settle();
  fixture.delete(A);
  await fixture.clock.advance(60_000);
  assert.deepEqual(
    fixture.begun.map(({ deleted, retry }) => ({
      deleted,
      attempt: retry.attempt,
    })),
    [
      { deleted: false, attempt: 0 },
      { deleted: true, attempt: 0 },
      { deleted: true, attempt: 1 },
      { deleted: true, attempt: 2 },
    ],
  );
  assert(fixture.isForgotten(A));
  assert.equal(fixture.processor.delayed, 0);
});

test("EventProcessor repeats a failed deletion although an event waits [TriggerReconcilerOnAllEventIT]", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  fixture.script = ({ deleted }) => deleted ? undefined : DONE;
  fixture.add(A);
  await fixture.settle();
  fixture.delete(A);
  await fixture.settle();
  fixture.processor.onTrigger(A, "source", {});
  await fixture.end(A, FAILED);
  await fixture.clock.advance(100);
  assert.deepEqual(fixture.begun.map(({ deleted }) => deleted), [
    false,
    true,
    true,
  ]);
  await fixture.end(A);
  assert(fixture.isForgotten(A));
});

test("EventProcessor reconciles a new object after the deletion of the old one", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A);
  fixture.delete(A);
  await fixture.settle();
  fixture.add(A);
  await fixture.settle();
  assert.equal(fixture.begun.length, 2);
  await fixture.end(A);
  assert.deepEqual(fixture.begun.map((run) => run.deleted), [
    false,
    true,
    false,
  ]);
  await fixture.end(A);
  assert.equal(fixture.begun.length, 3);
});
