import assert from "node:assert/strict";
import { test } from "node:test";
import { WorldClock } from "../../../testing/check/world_clock.ts";
import { replaceGlobals } from "../../../testing/check/world_globals.ts";

test("A timer of a world that is refreshed fires once, by its last start", () => {
  const world = new WorldClock();
  const clock = world.view();
  const restore = replaceGlobals({
    clock: () => clock,
    random: () => 0,
    uuid: () => "",
    fetch: () => Promise.reject(new Error("Unexpected request")),
    working() {},
  });
  const fired: number[] = [];
  try {
    const timer: unknown = setTimeout(() => fired.push(clock.now()), 1_000);
    world.moveTo(600);
    (timer as { refresh(): void }).refresh();
    while (world.fireNext(5_000));
  } finally {
    restore();
  }
  assert.deepEqual(fired, [1_600]);
});
