import assert from "node:assert/strict";
import { test } from "node:test";
import { requestsOf } from "@coracle/operator/workflows";

const names = { requestedAt: "r", forceAt: "f" };

function object(annotations?: Record<string, string>) {
  return { metadata: { name: "web", annotations } };
}

test("requestsOf records the token unchanged, even if blank, and none if absent [F13]", () => {
  const handled = (annotations?: Record<string, string>) =>
    requestsOf(object(annotations), {}, names).handled;
  assert.equal(handled({ r: "now" }).lastHandledReconcileAt, "now");
  assert.equal(handled({ r: "" }).lastHandledReconcileAt, "");
  assert.deepEqual(handled(), {});
  const before = { lastHandledReconcileAt: "old" };
  assert.deepEqual(requestsOf(object(), before, names).handled, before);
});

test("requestsOf honours a force once and only beside the same request [F40]", () => {
  const both = object({ r: "1", f: "1" });
  assert.equal(requestsOf(both, {}, names).forced, true);
  const after = requestsOf(both, {}, names).handled;
  assert.equal(requestsOf(both, after, names).forced, false);
  const other = requestsOf(object({ r: "1", f: "2" }), {}, names);
  assert.equal(other.forced, false);
  assert.equal(
    other.handled.lastHandledForceAt,
    "2",
    "remembered though refused",
  );
  const handled = { lastHandledReconcileAt: "1" };
  assert.equal(requestsOf(both, handled, names).forced, false);
});
