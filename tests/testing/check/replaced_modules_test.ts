import assert from "node:assert/strict";
import type * as platformCrypto from "node:crypto";
import type * as platformPromises from "node:timers/promises";
import { test } from "node:test";
import {
  REPLACED_MODULES,
  replacementOf,
} from "../../../dev/testing/check/replaced_modules.ts";

const { setTimeout: wait, setInterval: waitAgain, scheduler } =
  REPLACED_MODULES["timers/promises"] as typeof platformPromises;
const { randomBytes, randomInt } = REPLACED_MODULES[
  "crypto"
] as typeof platformCrypto;

/** Replaces the timers of the process, as a simulation does. */
async function withTimers(
  play: (timers: Map<number, () => void>) => Promise<void>,
): Promise<void> {
  const { setTimeout, clearTimeout } = globalThis;
  const timers = new Map<number, () => void>();
  let last = 0;
  Object.assign(globalThis, {
    setTimeout(callback: () => void) {
      timers.set(++last, callback);
      return last;
    },
    clearTimeout: (timer: number) => void timers.delete(timer),
  });
  try {
    await play(timers);
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout });
  }
}

test("A promised timer of a simulation gives its value", () =>
  withTimers(async (timers) => {
    const waiting = wait(10, "value");
    timers.get(1)?.();
    assert.equal(await waiting, "value");
    const again = waitAgain(10, "again");
    for (const timer of [2, 3]) {
      const next = again.next();
      timers.get(timer)?.();
      assert.deepEqual(await next, { done: false, value: "again" });
    }
  }));

test("A promised timer of a simulation ends with its signal", () =>
  withTimers(async (timers) => {
    const why = new Error("why");
    const isAborted = (error: Error) =>
      error.name === "AbortError" && error.cause === why;
    await assert.rejects(
      wait(10, undefined, { signal: AbortSignal.abort(why) }),
      isAborted,
    );
    assert.equal(timers.size, 0);
    for (
      const begin of [
        wait,
        (ms: number, _: unknown, options: object) =>
          scheduler.wait(ms, options),
      ]
    ) {
      const stop = new AbortController();
      const waiting = begin(10, undefined, { signal: stop.signal });
      assert.equal(timers.size, 1);
      stop.abort(why);
      await assert.rejects(waiting, isAborted);
      assert.equal(timers.size, 0);
    }
  }));

test("A promised timer of a simulation leaves no listener", () =>
  withTimers(async (timers) => {
    const { signal } = new AbortController();
    const listeners = new Set<unknown>();
    const followed = new Proxy(signal, {
      get(target, name) {
        if (name === "addEventListener") {
          return (_: string, listener: unknown) => listeners.add(listener);
        }
        if (name === "removeEventListener") {
          return (_: string, listener: unknown) => listeners.delete(listener);
        }
        return Reflect.get(target, name, target);
      },
    });
    const waiting = wait(10, undefined, { signal: followed });
    assert.equal(listeners.size, 1);
    timers.get(1)?.();
    await waiting;
    assert.equal(listeners.size, 0);
  }));

test("Random values of a simulation are those of its globals", async () => {
  const { random } = Math;
  try {
    Math.random = () => 0.25;
    assert.equal(randomInt(10), 2);
    assert.equal(randomInt(10, 20), 12);
  } finally {
    Math.random = random;
  }
  assert.equal(randomBytes(4).length, 4);
  const given = await new Promise<unknown>((resolve) =>
    randomBytes(3, (error, bytes) => resolve([error, bytes.length]))
  );
  assert.deepEqual(given, [null, 3]);
});

test("A module of the runtime is replaced with and without its prefix", () => {
  const url = replacementOf("node:timers/promises");
  assert.match(url ?? "", /^data:text\/javascript,/);
  assert.equal(replacementOf("timers/promises"), url);
  for (const name of ["node:fs", "constructor", "./timers"]) {
    assert.equal(replacementOf(name), undefined, name);
  }
});
