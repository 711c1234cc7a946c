import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator } from "../../../core/operator/operator.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";

test("Operator that does not run measures no lag when it is inspected", () => {
  const clock = new VirtualClock();
  const operator = new Operator({ clock });
  operator.inspect();
  assert.equal(clock.pendingTimers, 0);
});
