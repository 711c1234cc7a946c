import assert from "node:assert/strict";
import { test } from "node:test";
import { runCopier, statusOf, writesOf } from "./copier_world.ts";

for (
  const [place, crashed] of [
    ["before", "3 1 patch secrets 0 unanswered"],
    ["unanswered", "3 1 patch secrets 201 changed unanswered"],
    ["after", "3 1 patch secrets 201 changed"],
  ] as const
) {
  test(`A crash ${place} a write starts the next incarnation in its state`, async () => {
    const run = await runCopier([{ do: "crash", write: 3, place }]);
    assert.deepEqual(run.hits, [1]);
    assert.equal(run.incarnations, 2);
    assert(run.quiet);
    const writes = writesOf(run);
    assert.equal(writes[2], crashed);
    assert(writes.slice(3).every((write) => / 2 /.test(write)), `${writes}`);
    const status = statusOf(run);
    // The state of the modules died: this process counts from 1.
    assert.deepEqual(status, { runs: 1, text: "a" });
    assert("v1 Secret default/one" in run.end);
  });
}
