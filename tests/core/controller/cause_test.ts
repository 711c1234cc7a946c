import assert from "node:assert/strict";
import { test } from "node:test";
import { byWatch, causeText } from "../../../core/controller/cause.ts";
import { Priority } from "../../../core/queue/scheduling_queue.ts";

test("byWatch gives what a start or a relist finds a lower priority", () => {
  const { live, resync } = Priority;
  const cases = [
    [{ type: "added", initial: true, relist: true }, resync],
    [{ type: "added", initial: false, relist: true }, live],
    [{ type: "updated", initial: false, relist: true }, resync],
    [{ type: "updated", initial: false, relist: false }, live],
  ] as const;
  for (const [event, priority] of cases) {
    assert.equal(byWatch(event).priority, priority);
  }
});

test("causeText names the source, the object and the number of events", () => {
  const object = { namespace: "default", name: "web" };
  const cause = { type: "source", source: "pods", object } as const;
  assert.equal(
    causeText({ ...cause, kind: "Pod", events: 2 }),
    "source pods: Pod default/web (2 events)",
  );
  assert.equal(causeText({ ...cause, events: 1 }), "source pods: default/web");
  assert.equal(causeText({ type: "initial", events: 1 }), "initial");
});
