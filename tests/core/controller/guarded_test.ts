import assert from "node:assert/strict";
import { test } from "node:test";
import { FAILED, ProcessorCase } from "../../support/processor_case.ts";

function failing(): never {
  throw new Error("A fault of the user");
}

test("EventProcessor goes on whatever an observer of runs throws", async () => {
  const one = new ProcessorCase({
    observers: [{ started: failing, ended: failing, forgotten: failing }],
  });
  one.processor.resume();
  one.add("default/a");
  await one.settle();
  await one.end("default/a");
  one.update("default/a");
  await one.settle();
  assert.deepEqual(one.keys, ["default/a", "default/a"]);
  await one.end("default/a");
  one.delete("default/a");
  assert.deepEqual(one.forgotten, ["default/a"]);
  assert.equal(one.processor.running, 0);
  assert.equal(one.faults.length, 5);
  assert.match(one.faults[0] ?? "", /^tell of a run: Error: A fault/);
});

test("EventProcessor retries as by default when a retry policy throws or gives no number", async () => {
  for (const delay of [failing, () => NaN, () => -1]) {
    const one = new ProcessorCase({
      settings: { retry: { maxAttempts: 3, delay } },
    });
    one.processor.resume();
    one.add("default/a");
    await one.settle();
    await one.end("default/a", FAILED);
    assert.equal(one.begun.length, 1);
    await one.clock.advance(2_200);
    assert.equal(one.begun.length, 2, "about 2 s later");
    assert.match(one.faults.join(), /plan a retry/);
  }
});

test("EventProcessor lets an object run when its limiter throws or gives no number", async () => {
  for (const admit of [failing, () => NaN]) {
    const one = new ProcessorCase({ settings: { rateLimit: { admit } } });
    one.processor.resume();
    one.add("default/a");
    await one.settle();
    assert.deepEqual(one.keys, ["default/a"]);
    assert.match(one.faults.join(), /limit runs/);
  }
});

test("EventProcessor goes on after an object that cannot be read", async () => {
  const one = new ProcessorCase();
  one.processor.resume();
  one.add("default/broken");
  Object.defineProperty(one.primaries, "get", {
    configurable: true,
    value: failing,
  });
  await one.settle();
  Reflect.deleteProperty(one.primaries, "get");
  assert.deepEqual(one.keys, []);
  assert.match(one.faults.join(), /begin a run/);
  one.add("default/b");
  one.update("default/broken");
  await one.settle();
  assert.deepEqual(one.keys, ["default/b", "default/broken"]);
});
