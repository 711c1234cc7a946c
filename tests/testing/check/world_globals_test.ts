import assert from "node:assert/strict";
import { test } from "node:test";
import { WorldClock } from "../../../dev/testing/check/world_clock.ts";
import { replaceGlobals } from "../../../dev/testing/check/world_globals.ts";

/** Runs with the globals of a world, whose random numbers are a half. */
async function withGlobals(
  body: (world: WorldClock) => void | Promise<void>,
  working: (change: 1 | -1) => void = () => {},
): Promise<void> {
  const world = new WorldClock();
  const clock = world.view();
  const restore = replaceGlobals({
    clock: () => clock,
    random: () => 0.5,
    uuid: () => "",
    fetch: () => Promise.reject(new Error("Unexpected request")),
    working,
  });
  try {
    await body(world);
  } finally {
    restore();
  }
}

test("A timer of a world that is refreshed fires once, by its last start", async () => {
  const fired: number[] = [];
  await withGlobals((world) => {
    const timer: unknown = setTimeout(() => fired.push(world.now()), 1_000);
    world.moveTo(600);
    (timer as { refresh(): void }).refresh();
    while (world.fireNext(5_000));
  });
  assert.deepEqual(fired, [1_600]);
});

test("A timer from before a world is cleared in it, and none of the world's", async () => {
  const fired: string[] = [];
  const before = Array.from(
    { length: 40 },
    () => setInterval(() => fired.push("before"), 1),
  );
  try {
    await withGlobals((world) => {
      for (let index = 0; index < 500; index++) {
        setTimeout(() => fired.push("world"), 1_000);
      }
      for (const timer of before) clearInterval(timer);
      while (world.fireNext(5_000));
    });
    // Timers fire in the order in which they are due.
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(fired, Array(500).fill("world"));
  } finally {
    for (const timer of before) clearInterval(timer);
  }
});

test("Random bytes of a world fill the given part of a buffer, and no other", async () => {
  const bytes = new Uint8Array(6);
  await withGlobals(() => {
    crypto.getRandomValues(bytes.subarray(2, 4));
  });
  assert.deepEqual([...bytes], [0, 0, 128, 128, 0, 0]);
});

test("Work of other threads ends for a world even if it fails", async () => {
  const changes: number[] = [];
  const bytes = new Uint8Array(1);
  await withGlobals(async () => {
    await crypto.subtle.digest("SHA-256", bytes);
    assert.deepEqual(changes, [1, -1]);
    await assert.rejects(crypto.subtle.digest("no algorithm", bytes));
  }, (change) => changes.push(change));
  assert.deepEqual(changes, [1, -1, 1, -1]);
});
