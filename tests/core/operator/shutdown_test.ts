import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { silentLogger } from "@coracle/operator/client";
import type { ManagedController } from "../../../core/operator/controller_start.ts";
import { drain, onStopSignal } from "../../../core/operator/shutdown.ts";

/** Drains a controller that is idle and one whose run the test ends. */
function drained() {
  const clock = new VirtualClock();
  const calls: string[] = [];
  const left: unknown[] = [];
  const run = Promise.withResolvers<void>();
  const hurry = new AbortController();
  const controller = (name: string, idle: Promise<void>, keys: string[]) =>
    ({
      name,
      runningKeys: keys,
      settings: { isTask: false },
      pause: () => void calls.push(`pause ${name}`),
      abort: () => void calls.push(`abort ${name}`),
      whenIdle: () => idle,
    }) as unknown as ManagedController;
  let isOver = false;
  const log = {
    ...silentLogger,
    error: (_message: string, fields?: object) => void left.push(fields),
  };
  void drain([
    controller("idle", Promise.resolve(), []),
    controller("busy", run.promise, ["default/a"]),
  ], { clock, log, grace: 5_000, hurry: hurry.signal }).then(() =>
    isOver = true
  );
  return { clock, calls, left, run, hurry, isOver: () => isOver };
}

const PAUSED = ["pause idle", "pause busy"];
const ABORTED = [...PAUSED, "abort idle", "abort busy"];

test("drain lets runs end within the grace period", async () => {
  const { clock, calls, left, run, isOver } = drained();
  await clock.advance(4_999);
  assert.equal(isOver(), false);
  run.resolve();
  await clock.settle();
  assert.deepEqual([isOver(), calls, left], [true, PAUSED, []]);
});

test("drain aborts runs after the grace period, or when it is hurried", async () => {
  for (const hurries of [false, true]) {
    const { clock, calls, left, run, hurry, isOver } = drained();
    if (hurries) hurry.abort();
    await clock.advance(hurries ? 0 : 5_000);
    assert.deepEqual(calls, ABORTED);
    assert.equal(isOver(), false);
    run.resolve();
    await clock.settle();
    assert.deepEqual([isOver(), left], [true, []]);
  }
});

test("drain names the runs that it leaves behind a second after the abort", async () => {
  const { clock, calls, left, isOver } = drained();
  await clock.advance(5_999);
  assert.equal(isOver(), false);
  await clock.advance(1);
  assert.deepEqual([isOver(), calls], [true, ABORTED]);
  assert.deepEqual(left, [{ controller: "busy", objects: ["default/a"] }]);
});

test("onStopSignal counts both signals together, until it is removed", () => {
  const listeners = new Map<unknown, (...args: unknown[]) => void>();
  const { on, off } = process;
  const seen: unknown[] = [];
  try {
    Object.assign(process, {
      on: (signal: unknown, listener: () => void) =>
        listeners.set(signal, listener),
      off(signal: unknown, listener: () => void) {
        if (listeners.get(signal) === listener) listeners.delete(signal);
      },
    });
    const remove = onStopSignal((...parts) => void seen.push(parts));
    for (const signal of ["SIGTERM", "SIGINT"]) listeners.get(signal)?.();
    assert.deepEqual(seen, [["SIGTERM", 1], ["SIGINT", 2]]);
    remove();
    assert.equal(listeners.size, 0);
  } finally {
    Object.assign(process, { on, off });
  }
});
