import assert from "node:assert/strict";
import { test } from "node:test";
import {
  FAILED,
  ProcessorFixture,
} from "../../../support/processor_fixture.ts";

function failing(): never {
  throw new Error("A fault of the user");
}

test("EventProcessor continues after an observer of runs has thrown", async () => {
  const fixture = new ProcessorFixture({
    observers: [{ started: failing, ended: failing }],
  });
  fixture.processor.resume();
  fixture.add("default/a");
  await fixture.settle();
  await fixture.end("default/a");
  fixture.update("default/a");
  await fixture.settle();
  assert.deepEqual(fixture.keys, ["default/a", "default/a"]);
  await fixture.end("default/a");
  fixture.delete("default/a");
  assert(fixture.isForgotten("default/a"));
  assert.equal(fixture.processor.running, 0);
  assert.equal(fixture.faults.length, 4);
  assert.match(
    fixture.faults[0] ?? "",
    /^Cannot observe a run: Error: A fault/,
  );
});

test("EventProcessor uses default delays if a retry policy throws or returns no number", async () => {
  for (const delay of [failing, () => NaN, () => -1]) {
    const fixture = new ProcessorFixture({
      settings: { retry: { maxAttempts: 3, delay } },
    });
    fixture.processor.resume();
    fixture.add("default/a");
    await fixture.settle();
    await fixture.end("default/a", FAILED);
    assert.equal(fixture.begun.length, 1);
    await fixture.clock.advance(2_200);
    assert.equal(fixture.begun.length, 2, "about 2 s later");
    assert.match(fixture.faults.join(), /plan a retry/);
  }
});

test("EventProcessor forgets a deleted object whose observer throws", async () => {
  const fixture = new ProcessorFixture({ observers: [{ deleted: failing }] });
  fixture.add("default/a");
  fixture.delete("default/a");
  await fixture.settle();
  assert.ok(fixture.isForgotten("default/a"));
  assert.match(fixture.faults.join(), /observe a run/);
});

test("EventProcessor runs an object if its limiter throws or returns no number", async () => {
  for (const admit of [failing, () => NaN]) {
    const fixture = new ProcessorFixture({
      settings: { rateLimit: { admit } },
    });
    fixture.processor.resume();
    fixture.add("default/a");
    await fixture.settle();
    assert.deepEqual(fixture.keys, ["default/a"]);
    assert.match(fixture.faults.join(), /limit runs/);
  }
});

test("EventProcessor continues after an object that cannot be read", async () => {
  const fixture = new ProcessorFixture();
  fixture.processor.resume();
  fixture.add("default/broken");
  Object.defineProperty(fixture.primaries, "get", {
    configurable: true,
    value: failing,
  });
  await fixture.settle();
  Reflect.deleteProperty(fixture.primaries, "get");
  assert.deepEqual(fixture.keys, []);
  assert.match(fixture.faults.join(), /begin a run/);
  fixture.add("default/b");
  fixture.update("default/broken");
  await fixture.settle();
  assert.deepEqual(fixture.keys, ["default/b", "default/broken"]);
});
