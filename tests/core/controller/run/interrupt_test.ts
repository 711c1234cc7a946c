import assert from "node:assert/strict";
import { test } from "node:test";
import { RunInterruptedError } from "@coracle/operator/core";
import { ProcessorFixture } from "../../../support/processor_fixture.ts";

const POD = { namespace: "default", name: "web-0" };

test("An event during a run interrupts it with its source as cause [F42]", async () => {
  const fixture = new ProcessorFixture();
  fixture.processor.resume();
  fixture.add("default/web");
  await fixture.clock.settle();
  const { run } = fixture.open.get("default/web")!;
  const { interrupted } = run;
  assert(!interrupted.aborted);

  fixture.processor.onTrigger("default/web", "pods", {
    kind: "Pod",
    object: POD,
  });
  assert(interrupted.reason instanceof RunInterruptedError);
  assert.deepEqual(interrupted.reason.runCause, {
    type: "source",
    source: "pods",
    kind: "Pod",
    object: POD,
    events: 1,
  });
  assert.match(interrupted.reason.message, /source pods: Pod default\/web-0$/);
  assert(!run.signal.aborted, "the run may go on");

  fixture.open.get("default/web")!.end();
  await fixture.clock.settle();
  assert.equal(fixture.begun.length, 2);
  assert(!fixture.begun[1]!.interrupted.aborted);
});

test("The first event that interrupts a run counts, even before the signal is used [F42]", async () => {
  const fixture = new ProcessorFixture();
  fixture.processor.resume();
  fixture.add("default/web");
  await fixture.clock.settle();
  fixture.update("default/web");
  fixture.processor.request("default/web");
  const { reason } = fixture.begun[0]!.interrupted;
  assert.equal((reason as RunInterruptedError).runCause.type, "modified");
});

test("Events of other objects, and events before a run, do not interrupt it [F42]", async () => {
  const fixture = new ProcessorFixture();
  fixture.add("default/web");
  fixture.update("default/web");
  fixture.processor.resume();
  await fixture.clock.settle();
  fixture.add("default/other");
  assert(!fixture.begun[0]!.interrupted.aborted);
});
