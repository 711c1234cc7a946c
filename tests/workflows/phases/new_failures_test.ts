import assert from "node:assert/strict";
import { test } from "node:test";
import { newFailures } from "@coracle/operator/workflows";

function history(count: number) {
  return Array.from(
    { length: count },
    (_, at) => ({ at, text: `failure ${at}` }),
  );
}

test("newFailures returns the failures after the last reported one, in order [L38]", () => {
  const { reported, after } = newFailures(history(5).reverse(), { after: 2 });
  assert.deepEqual(reported, ["failure 3", "failure 4"]);
  assert.equal(after, 4);
});

test("newFailures returns no failure twice, even after a restart [L38]", () => {
  const first = newFailures(history(3), { after: undefined });
  assert.equal(first.reported.length, 3);
  const status = JSON.parse(JSON.stringify({ after: first.after }));
  assert.deepEqual(newFailures(history(3), status), { reported: [], after: 2 });
});

test("newFailures returns at most ten failures, of six lines each [L38]", () => {
  const { reported, after } = newFailures(history(50), { after: undefined });
  assert.equal(reported.length, 10);
  assert.equal(reported[0], "failure 40");
  assert.equal(after, 49, "the others are not reported later either");
  const text = "Error\n".repeat(40);
  const [long] = newFailures([{ at: 1, text }], { after: 0 }).reported;
  assert.equal(long?.split("\n").length, 6);
  assert.equal(
    newFailures(history(9), { after: 0, most: 2 }).reported.length,
    2,
  );
});
