import assert from "node:assert/strict";
import { test } from "node:test";
import { newFailures } from "../../../workflows/phases/new_failures.ts";

function history(count: number) {
  return Array.from(
    { length: count },
    (_, at) => ({ at, text: `failure ${at}` }),
  );
}

test("newFailures tells what is newer than what was told, the oldest first [L38]", () => {
  const { told, after } = newFailures(history(5).reverse(), { after: 2 });
  assert.deepEqual(told, ["failure 3", "failure 4"]);
  assert.equal(after, 4);
});

test("newFailures tells nothing twice, also after a restart [L38]", () => {
  const first = newFailures(history(3), { after: undefined });
  assert.equal(first.told.length, 3);
  const status = JSON.parse(JSON.stringify({ after: first.after }));
  assert.deepEqual(newFailures(history(3), status), { told: [], after: 2 });
});

test("newFailures tells no more than ten, of six lines each [L38]", () => {
  const { told, after } = newFailures(history(50), { after: undefined });
  assert.equal(told.length, 10);
  assert.equal(told[0], "failure 40");
  assert.equal(after, 49, "the others are not told later either");
  const text = "Error\n".repeat(40);
  const [long] = newFailures([{ at: 1, text }], { after: 0 }).told;
  assert.equal(long?.split("\n").length, 6);
  assert.equal(newFailures(history(9), { after: 0, most: 2 }).told.length, 2);
});
