import assert from "node:assert/strict";
import { test } from "node:test";
import { RunInterruptedError } from "../../../core/controller/run.ts";
import { ProcessorCase } from "../../support/processor_case.ts";

const POD = { namespace: "default", name: "web-0" };

test("An event during a run interrupts it and names its source [F42]", async () => {
  const one = new ProcessorCase();
  one.processor.resume();
  one.add("default/web");
  await one.clock.settle();
  const { run } = one.open.get("default/web")!;
  const { interrupted } = run;
  assert(!interrupted.aborted);

  one.processor.triggered("default/web", "pods", { kind: "Pod", object: POD });
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

  one.open.get("default/web")!.end();
  await one.clock.settle();
  assert.equal(one.begun.length, 2);
  assert(!one.begun[1]!.interrupted.aborted);
});

test("The first event that interrupts a run counts, also when nobody listened [F42]", async () => {
  const one = new ProcessorCase();
  one.processor.resume();
  one.add("default/web");
  await one.clock.settle();
  one.update("default/web");
  one.processor.requested("default/web");
  const { reason } = one.begun[0]!.interrupted;
  assert.equal((reason as RunInterruptedError).runCause.type, "modified");
});

test("Events of other objects, and those before a run, interrupt nothing [F42]", async () => {
  const one = new ProcessorCase();
  one.add("default/web");
  one.update("default/web");
  one.processor.resume();
  await one.clock.settle();
  one.add("default/other");
  assert(!one.begun[0]!.interrupted.aborted);
});
