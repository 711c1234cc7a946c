import assert from "node:assert/strict";
import type { RunAbortedError, TaskOptions } from "@coracle/operator/core";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Operator with a task for each gadget, which lasts until it is ended. */
function taskOf(
  fixture: OperatorFixture,
  told: string[],
  options: TaskOptions<Gadget> = {},
) {
  const operator = fixture.operator({
    namespaces: ["default"],
    concurrency: 1,
    shutdownGrace: 20_000,
  });
  const handle = operator.task(Gadget, options, async (gadget, { signal }) => {
    const { metadata: { name }, spec: { value } } = gadget;
    told.push(`${name} ${value} begins`);
    if (value === "throws") throw new Error("no");
    if (value === "returns") return;
    await new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve())
    );
    const { abortCause } = signal.reason as RunAbortedError;
    told.push(`${name} ends: ${abortCause}`);
  });
  return { operator, handle };
}

scenario(
  "a task runs while its object exists, beside the tasks of others",
  async (fixture) => {
    const told: string[] = [];
    const { operator, handle } = taskOf(fixture, told);
    await fixture.create("a");
    await fixture.start(operator);
    await fixture.create("b");
    await fixture.settle();
    assert.deepEqual(told, ["a first begins", "b first begins"]);
    assert.equal(handle.health().running, 2);
    // By default only the deletion of its object ends a task.
    await fixture.change("a", { value: "second" });
    await fixture.settle();
    assert.equal(told.length, 2);
    await fixture.remove("a");
    await fixture.settle();
    assert.deepEqual(told.slice(2), ["a ends: deletion"]);
    assert.equal(handle.health().running, 1);
    const before = fixture.clock.now();
    await fixture.done(operator.stop());
    assert.deepEqual(told.slice(3), ["b ends: shutdown"]);
    assert.ok(fixture.clock.now() - before < 1_000, "the grace is not used up");
  },
);

scenario(
  "a task is ended and restarted as its option when says",
  async (fixture) => {
    const told: string[] = [];
    const { operator } = taskOf(fixture, told, {
      when: ({ spec, metadata }) =>
        metadata.labels?.["off"] === undefined && spec.value,
    });
    await fixture.create("a");
    await fixture.start(operator);
    await fixture.settle();
    await fixture.mark("a", { annotations: { note: "other" } });
    await fixture.settle();
    assert.deepEqual(told, ["a first begins"]);
    await fixture.change("a", { value: "second" });
    await fixture.settle();
    assert.deepEqual(told.slice(1), ["a ends: change", "a second begins"]);
    await fixture.mark("a", { labels: { off: "" } });
    await fixture.settle();
    assert.deepEqual(told.slice(3), ["a ends: change"]);
    await fixture.advance(60_000);
    assert.equal(told.length, 4);
    await fixture.client.patch(Gadget, { namespace: "default", name: "a" }, [
      { op: "remove", path: "/metadata/labels/off" },
    ], { type: "json" });
    await fixture.settle();
    assert.deepEqual(told.slice(4), ["a second begins"]);
  },
);

scenario(
  "a task that changes its copy of the object is not restarted for that",
  async (fixture) => {
    const told: string[] = [];
    const operator = fixture.operator();
    operator.task(
      Gadget,
      { when: ({ spec }) => spec },
      async (gadget, { signal }) => {
        told.push(String(gadget.spec.value));
        gadget.spec.value = "changed here";
        await new Promise((resolve) =>
          signal.addEventListener("abort", resolve)
        );
      },
    );
    await fixture.create("a");
    await fixture.start(operator);
    await fixture.settle();
    await fixture.mark("a", { annotations: { note: "other" } });
    await fixture.settle();
    assert.deepEqual(told, ["first"]);
    await fixture.change("a", { value: "second" });
    await fixture.settle();
    assert.deepEqual(told, ["first", "second"]);
  },
);

scenario(
  "a task that throws begins again after a pause, one that returns does not",
  async (fixture) => {
    const told: string[] = [];
    const { operator } = taskOf(fixture, told, {
      restart: { initial: "10s", multiplier: 2, max: "20s", jitter: 0 },
    });
    await fixture.create("a", { value: "throws" });
    await fixture.start(operator);
    await fixture.settle();
    assert.equal(told.length, 1);
    await fixture.advance(10_000);
    assert.equal(told.length, 2);
    await fixture.advance(20_000);
    await fixture.advance(20_000);
    assert.equal(told.length, 4);
    await fixture.remove("a");
    await fixture.create("b", { value: "returns" });
    await fixture.advance(60_000);
    assert.deepEqual(told.slice(4), ["b returns begins"]);
  },
);

scenario("operator.task() refuses wrong options", async (fixture) => {
  const operator = fixture.operator();
  const refused = (options: object, words: RegExp) =>
    assert.throws(
      () => operator.task(Gadget, options as TaskOptions<Gadget>, () => {}),
      words,
    );
  refused({ when: true }, /"when" must be a function/);
  refused({ restart: { initial: "soon" } }, /"initial" must be a duration/);
  refused({ restarts: false }, /there is no option "restarts"/);
  refused({ concurrency: 0 }, /"concurrency"/);
  operator.task(Gadget, {}, () => {});
  refused({}, /the name is taken/);
  await fixture.settle();
});
