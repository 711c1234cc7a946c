import assert from "node:assert/strict";
import { test } from "node:test";
import { linkedSignal } from "../../core/signals.ts";

test("linkedSignal fires with the first of its signals, and its reason", () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const { signal } = linkedSignal(a.signal, undefined, b.signal);
  assert.equal(signal.aborted, false);
  b.abort("second");
  a.abort("first");
  assert.equal(signal.aborted, true);
  assert.equal(signal.reason, "second");
});

test("linkedSignal has fired if one of its signals has", () => {
  assert.equal(linkedSignal(AbortSignal.abort("why")).signal.reason, "why");
  assert.equal(linkedSignal().signal.aborted, false);
});

test("linkedSignal does not fire after it was unlinked", () => {
  const controller = new AbortController();
  const link = linkedSignal(controller.signal);
  link.unlink();
  controller.abort();
  assert.equal(link.signal.aborted, false);
});
