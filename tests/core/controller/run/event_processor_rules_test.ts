import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CacheEvent,
  type ObjectKey,
  parseKey,
} from "@coracle/operator/core";
import { ConcurrencyCap } from "../../../../core/controller/run/concurrency_cap.ts";
import { FRESH } from "../../../../core/controller/run/run_state.ts";
import {
  DONE,
  FAILED,
  type Gadget,
  type ProcessorCaseOptions,
  ProcessorFixture,
  running,
} from "../../../support/processor_fixture.ts";

const A = "default/a";
const B = "default/b";

/** Processor of a replica; the test says which objects it does not own. */
function sharded(settings: ProcessorCaseOptions["settings"] = {}) {
  const lost = new Set<string>();
  const owns = (key: string) => !lost.has(key);
  return { lost, fixture: new ProcessorFixture({ settings, shard: { owns } }) };
}

interface Noted {
  readonly type: string;
  readonly key: ObjectKey;
}

/** Processor whose source follows the primaries, with what it was given. */
function followed() {
  const events: Noted[] = [];
  const primaryEvent = (event: Noted) => void events.push(event);
  const sources = {
    followsPrimaries: true,
    primaryEvent,
    primaryChanged: ({ key, ...event }: CacheEvent<Gadget>) =>
      primaryEvent({ ...event, key: parseKey(key) }),
  };
  return { events, fixture: new ProcessorFixture({ sources }) };
}

test("EventProcessor tells sources of a primary whose namespace is left", async () => {
  const { events, fixture } = followed();
  fixture.processor.resume();
  fixture.add(A);
  await fixture.settle();
  fixture.leave(A);
  assert.equal(fixture.begun[0]?.aborted, "namespace");
  assert.deepEqual(events.map(({ type, key }) => [type, key.name]), [
    ["added", "a"],
    ["deleted", "a"],
  ]);
});

test("EventProcessor says whether it runs a triggered primary now", () => {
  const fixture = new ProcessorFixture();
  fixture.add(A);
  assert.equal(fixture.processor.onTrigger(A, "maps", {}), false);
  fixture.processor.resume();
  assert.equal(fixture.processor.onTrigger(A, "maps", {}), true);
  assert.equal(fixture.processor.onTrigger(B, "maps", {}), false);
});

test("EventProcessor adds no run of an object that is about to vanish", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, { end: { type: "finalizerRemoved" } });
  fixture.processor.onTrigger(A, "maps", {});
  fixture.processor.request(A);
  fixture.processor.resync();
  assert.equal(fixture.processor.waiting, 0);
});

test("EventProcessor forgets at once that a new object was about to vanish", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, { end: { type: "finalizerRemoved" } });
  // Its deletion was missed.
  fixture.update(A);
  await fixture.settle();
  fixture.processor.onTrigger(A, "maps", {});
  await fixture.end(A);
  assert.equal(fixture.begun.length, 3);
});

test("EventProcessor spreads repeated runs by the retry, the interval or a minute", async () => {
  const cases = [
    [{ retry: { initial: "2s", jitter: 0 } }, 1_000],
    [{ retry: { initial: "10m", jitter: 0 } }, 30_000],
    [{ retry: { initial: "10m", jitter: 0 }, maxInterval: "10s" }, 5_000],
  ] as const;
  for (const [settings, expected] of cases) {
    const fixture = await running({ settings });
    fixture.add(A);
    await fixture.settle();
    await fixture.end(A, FAILED);
    await fixture.clock.advance(200);
    fixture.processor.retryFailed();
    await fixture.clock.advance(expected - 1);
    assert.equal(fixture.begun.length, 1);
    await fixture.clock.advance(1);
    assert.equal(fixture.begun.length, 2);
  }
});

test("EventProcessor adds nothing for objects of other replicas", async () => {
  const { lost, fixture } = sharded();
  fixture.add(A);
  lost.add(B);
  fixture.add(B);
  assert.equal(fixture.processor.waiting, 1);
  lost.add(A);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, [], "the object was lost while it waited");
  fixture.processor.resync();
  assert.equal(fixture.processor.waiting, 0);
});

test("EventProcessor aborts the run of an object that another replica gets", async () => {
  const { lost, fixture } = sharded();
  fixture.processor.resume();
  fixture.add(A);
  await fixture.settle();
  lost.add(A);
  const released = fixture.processor.releaseShard();
  assert.equal(fixture.begun[0]?.aborted, "shard");
  await fixture.end(A, FAILED);
  await released;
  assert.equal(fixture.processor.waiting, 0);
});

test("EventProcessor reports the deletion of its own objects to observers", () => {
  const lost = new Set<string>([B]);
  const deleted: string[] = [];
  const fixture = new ProcessorFixture({
    shard: { owns: (key) => !lost.has(key) },
    observers: [{ deleted: (key) => deleted.push(key) }],
  });
  for (const key of [A, B]) {
    fixture.add(key);
    fixture.delete(key);
  }
  assert.deepEqual(deleted, [A]);
});

test("EventProcessor runs each of several deletions of a name, then the new object", async () => {
  const fixture = new ProcessorFixture({ settings: { allEvents: true } });
  const uids = [0, 1].map(() => {
    const { metadata: { uid } } = fixture.add(A);
    fixture.delete(A);
    return uid;
  });
  const last = fixture.add(A);
  fixture.processor.onPrimary({
    type: "deleted",
    key: A,
    object: { ...last, metadata: { ...last.metadata, uid: uids[1] } },
    header: {},
  } as CacheEvent<Gadget>, -1); // Reported twice.
  fixture.script = () => DONE;
  fixture.processor.resume();
  await fixture.settle();
  const seen = fixture.begun.map(({ primary: { metadata }, deleted }) => [
    metadata.uid,
    deleted,
  ]);
  assert.deepEqual(seen, [
    [uids[0], true],
    [uids[1], true],
    [last.metadata.uid, false],
  ]);
});

test("EventProcessor runs the second deletion of a name as a deletion", async () => {
  const fixture = new ProcessorFixture({ settings: { allEvents: true } });
  for (let count = 0; count < 2; count++) {
    fixture.add(A);
    fixture.delete(A);
  }
  fixture.script = () => DONE;
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.begun.map(({ cause: { type } }) => type), [
    "added",
    "deleted",
  ]);
});

test("EventProcessor aborts no run of a deletion when the next object is deleted", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  fixture.add(A);
  fixture.delete(A);
  await fixture.settle();
  fixture.add(A);
  fixture.delete(A);
  assert.deepEqual(fixture.begun.map((run) => [run.deleted, run.aborted]), [
    [true, undefined],
  ]);
});

test("EventProcessor says that the final state of a deleted object is unknown", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  const object = fixture.add(A);
  await fixture.settle();
  await fixture.end(A);
  fixture.primaries.delete(A);
  fixture.processor.onPrimary({
    type: "deleted",
    key: A,
    object,
    header: {},
    finalStateUnknown: true,
  } as CacheEvent<Gadget>, -1);
  await fixture.settle();
  const unknown = fixture.begun.map((run) => run.finalStateUnknown);
  assert.deepEqual(unknown, [false, true]);
});

test("EventProcessor keeps nothing of a deletion whose failure is final", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  fixture.add(A);
  fixture.delete(A);
  await fixture.settle();
  await fixture.end(A, { end: { type: "failed", final: true } });
  assert(fixture.isForgotten(A));
  assert.equal(fixture.clock.pendingTimers, 0);
});

test("EventProcessor takes no place of the cap and sets one timer while it waits", async () => {
  let isHeld = false;
  const cap = new ConcurrencyCap(2);
  const fixture = await running({
    cap,
    mayRun: () => isHeld,
    settings: { maxInterval: false },
  });
  for (const key of [A, B]) {
    fixture.add(key);
    await fixture.settle();
  }
  fixture.processor.resume();
  await fixture.settle();
  assert.equal(cap.running, 0);
  assert.equal(fixture.clock.pendingTimers, 1);
  isHeld = true;
  await fixture.clock.advance(1_000);
  assert.deepEqual(fixture.keys, [A, B]);
  assert.equal(cap.running, 2);
});

test("EventProcessor forgets the failures of an object that is gone at its retry", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, FAILED);
  fixture.primaries.delete(A);
  await fixture.clock.advance(2_000);
  assert.equal(fixture.begun.length, 1);
  assert.equal(fixture.processor.stateOf(A), FRESH);
});

test("EventProcessor plans no retry while a run in its place goes on", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, FAILED);
  fixture.update(A);
  await fixture.clock.advance(200);
  assert.equal(fixture.begun.length, 2);
  await fixture.clock.advance(5_000);
  await fixture.end(A);
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor measures how long an object has waited", async () => {
  const fixture = new ProcessorFixture();
  await fixture.clock.advance(10_000);
  fixture.add(A);
  await fixture.clock.advance(300);
  fixture.processor.resume();
  await fixture.settle();
  assert.equal(fixture.begun[0]?.waited, 300);
});

test("EventProcessor counts one event for the deletion that aborts a run", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  fixture.mark(A);
  await fixture.end(A, FAILED);
  assert.deepEqual(fixture.begun[1]?.cause, { type: "modified", events: 1 });
});

test("EventProcessor repeats a run that a stop has aborted once it is resumed", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  fixture.processor.abortAll("shutdown");
  await fixture.end(A, FAILED);
  assert.equal(fixture.begun.length, 2);
  assert.equal(fixture.plans[0], undefined, "it is no failure");
});

test("EventProcessor pauses an object for the longer of its pause and its hold", async () => {
  for (const pause of [50, 3_000]) {
    const fixture = await running();
    await fixture.clock.advance(60_000);
    fixture.add(A);
    await fixture.settle();
    const [run] = fixture.begun;
    if (run !== undefined) run.pause = pause;
    await fixture.end(A, FAILED);
    fixture.update(A);
    const least = Math.max(pause, 100);
    await fixture.clock.advance(least - 1);
    assert.equal(fixture.begun.length, 1);
    await fixture.clock.advance(1);
    assert.equal(fixture.begun.length, 2);
  }
});

test("EventProcessor runs nothing without an event when it is first resumed", async () => {
  const fixture = new ProcessorFixture();
  fixture.add(A);
  fixture.processor.forget(A);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, []);
});

test("EventProcessor accepts an event whose filter throws", async () => {
  const generic = () => {
    throw new Error("filter");
  };
  const fixture = await running({ settings: { filters: { generic } } });
  fixture.add(A);
  await fixture.settle();
  assert.deepEqual(fixture.keys, [A]);
});
