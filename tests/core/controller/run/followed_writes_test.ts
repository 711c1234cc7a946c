import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@coracle/operator/client";
import { FollowedWrites } from "../../../../core/controller/run/followed_writes.ts";

/** Writes of a run, and what is logged of them. */
function followed() {
  const levels: string[] = [];
  const log = {
    ...silentLogger,
    warn: () => levels.push("warn"),
    error: () => levels.push("error"),
  };
  return { levels, writes: new FollowedWrites(() => log, false) };
}

const refused = () => Promise.reject(new Error("Refused"));
const turn = () => new Promise((resolve) => setTimeout(resolve));

test("FollowedWrites logs an error of a write that fails after the end", async () => {
  for (const open of [false, true]) {
    const { writes, levels } = followed();
    if (open) void writes.follow(Promise.resolve(), "ctx.apply(A)");
    await writes.end();
    void writes.follow(refused(), "ctx.apply(B)");
    await turn();
    assert.deepEqual(levels, ["error"], `a write is open: ${open}`);
  }
});

test("FollowedWrites fails the end with the first error, and logs all", async () => {
  const { writes, levels } = followed();
  void writes.follow(refused(), "ctx.apply(A)");
  void writes.follow(
    Promise.reject(new Error("Refused later")),
    "ctx.apply(B)",
  );
  await assert.rejects(async () => await writes.end(), /^Error: Refused$/);
  assert.deepEqual(levels, ["warn", "warn"]);
});

test("FollowedWrites leaves the error of an awaited write to its reconciler", async () => {
  const { writes, levels } = followed();
  await assert.rejects(writes.follow(refused(), "ctx.apply(A)"));
  await writes.end();
  assert.deepEqual(levels, []);
});
