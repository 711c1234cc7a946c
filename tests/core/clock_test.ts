import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { systemClock } from "@coracle/operator/client";
import { deadline, sleep } from "../../core/clock.ts";

const never = new Promise<never>(() => {});

test("deadline returns the value of work that ends in time", async () => {
  const clock = new VirtualClock();
  assert.equal(await deadline(Promise.resolve(1), 1_000, { clock }), 1);
  assert.equal(await deadline(() => 2, 1_000, { clock }), 2);
  assert.equal(clock.pendingTimers, 0);
});

test("deadline rejects late work and aborts its signal", async () => {
  const clock = new VirtualClock();
  let signal: AbortSignal | undefined;
  const waiting = deadline(
    (given) => {
      signal = given;
      return never;
    },
    1_000,
    { clock, onTimeout: () => new RangeError("late") },
  );
  const refused = assert.rejects(waiting, RangeError);
  await clock.advance(1_000);
  await refused;
  assert.equal(signal?.aborted, true);
  const unnamed = assert.rejects(
    deadline(never, 1_000, { clock }),
    /^Error: Cannot wait any longer: it took more than 1000 ms$/,
  );
  await clock.advance(1_000);
  await unnamed;
});

test("deadline ends with its signal, and starts nothing after it", async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = deadline(never, 1_000, { clock, signal });
  controller.abort("stopped");
  await assert.rejects(waiting, (reason) => reason === "stopped");
  let calls = 0;
  await assert.rejects(deadline(() => calls++, 1_000, { clock, signal }));
  assert.equal(calls, 0);
});

test("deadline with awaitsEnd waits for late work to end", async () => {
  const clock = new VirtualClock();
  const work = deadline(
    async (signal) => {
      await sleep(5_000, { clock });
      return signal.aborted;
    },
    1_000,
    { clock, awaitsEnd: true },
  );
  await clock.advance(5_000);
  assert.equal(await work, true);
});

test("systemClock fires a timer of 60 days when it is due, unless it is cancelled", () => {
  const { setTimeout, clearTimeout } = globalThis;
  const set: (readonly [delay: number, fire: () => void])[] = [];
  Object.assign(globalThis, {
    setTimeout(fire: () => void, delay: number) {
      const timer = [delay, fire] as const;
      set.push(timer);
      return timer;
    },
    clearTimeout(timer: (typeof set)[number]) {
      if (set.includes(timer)) set.splice(set.indexOf(timer), 1);
    },
  });
  const due = 60 * 86_400_000;
  try {
    for (const parts of [0, 1, 2, 3]) {
      let fired = 0;
      const timer = systemClock.setTimer(() => fired++, due);
      let waited = 0;
      for (let part = 0; part < parts; part++) {
        const [delay, fire] = set.pop()!;
        waited += delay;
        fire();
      }
      timer.cancel();
      assert.deepEqual(set, [], `cancelled in part ${parts}`);
      assert.equal(fired, Number(parts === 3));
      if (parts === 3) assert.equal(waited, due);
    }
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout });
  }
});
