import assert from "node:assert/strict";
import { test } from "node:test";
import { RunAbortedError } from "@coracle/operator/core";
import {
  type AbortCause,
  type Run,
  writeText,
} from "../../../../core/controller/run/run.ts";
import {
  type Gadget,
  ProcessorFixture,
} from "../../../support/processor_fixture.ts";

const KEY = "default/a";
const CONFIG_MAP = { group: "", version: "v1", kind: "ConfigMap" };
const CAUSES: readonly AbortCause[] = [
  "deletion",
  "leadership",
  "namespace",
  "shard",
  "shutdown",
  "timeout",
];

/** A run that goes on, with a timeout of a minute. */
async function begun(): Promise<{
  readonly run: Run<Gadget>;
  readonly fixture: ProcessorFixture;
  /** Causes with which its owner was called. */
  readonly causes: AbortCause[];
}> {
  const fixture = new ProcessorFixture({
    settings: { timeout: "1m", maxInterval: false },
  });
  fixture.processor.resume();
  fixture.add(KEY);
  await fixture.settle();
  const { run } = fixture.open.get(KEY)!;
  const causes: AbortCause[] = [];
  run.onAbort = (_run, cause) => causes.push(cause);
  return { run, fixture, causes };
}

for (const cause of CAUSES) {
  test(`A run that is aborted by ${cause} says so everywhere, once`, async () => {
    const { run, fixture, causes } = await begun();
    const early = run.signal;
    run.throwIfAborted();
    run.abort(cause);
    for (const other of CAUSES) run.abort(other);
    assert.equal(run.aborted, cause);
    assert.deepEqual(causes, [cause]);
    assert.equal(run.signal, early);
    assert(early.reason instanceof RunAbortedError);
    assert.throws(() => run.throwIfAborted(), RunAbortedError);
    assert.equal(fixture.clock.pendingTimers, 0, "its timeout is cancelled");
  });

  test(`A run that releases its object is aborted by ${cause} as it should`, async () => {
    const { run, causes } = await begun();
    run.isReleasing = true;
    run.abort(cause);
    // Its own removal of the finalizer deletes the object.
    const expected = cause === "deletion" ? [] : [cause];
    assert.deepEqual(causes, expected);
    assert.equal(run.signal.aborted, expected.length > 0, "a later signal");
  });
}

test("A run is aborted by its timeout, which its end cancels", async () => {
  const late = await begun();
  await late.fixture.clock.advance(60_000);
  assert.deepEqual(late.causes, ["timeout"]);
  const { run, fixture, causes } = await begun();
  await fixture.end(KEY);
  assert.equal(fixture.clock.pendingTimers, 0);
  await fixture.clock.advance(60_000);
  assert.deepEqual([causes, run.aborted], [[], undefined]);
});

test("A run is interrupted by the first event, whenever its signal is read", async () => {
  const { run, fixture } = await begun();
  assert(!run.hasNewEvent());
  run.requestAnother();
  fixture.processor.onTrigger(KEY, "late", {});
  assert(run.hasNewEvent());
  const { reason } = run.interrupted;
  assert.equal(reason.runCause.type, "requested");
  assert.equal(run.interrupted.reason, reason);
  assert(!run.signal.aborted);
});

test("A run keeps its first twenty writes", async () => {
  const { run } = await begun();
  assert.deepEqual(run.writes, []);
  const writes = Array.from({ length: 30 }, (_, index) => ({
    verb: "apply",
    kind: CONFIG_MAP,
    key: `default/${index}`,
  }));
  for (const write of writes) run.wrote(write);
  assert.deepEqual(run.writes, writes.slice(0, 20));
});

test("The text of a write names its verb, subresource, kind and object", () => {
  const write = { verb: "patch", kind: CONFIG_MAP, key: "default/a" };
  assert.deepEqual(
    [write, { ...write, subresource: "status" } as const].map(writeText),
    ["patch v1 ConfigMap default/a", "patch status of v1 ConfigMap default/a"],
  );
});
