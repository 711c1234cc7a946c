import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../../../dev/apiserver/random.ts";
import { killWatchers } from "./kill_watchers.ts";

/** `npm run test:kills` has many more. */
const ROUNDS = 6;

test("Snapshot of a killed process hides and repeats no event", {
  timeout: 240_000,
}, async () => {
  const random = seededRandom(1);
  const { warm } = await killWatchers(ROUNDS, () => random.next());
  // The first process has none, and a kill may hit the first write.
  assert.ok(warm > ROUNDS / 2, `received ${warm}`);
});
