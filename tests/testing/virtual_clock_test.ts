import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { fc } from "../support/property.ts";
import { loadModule, nextTurn } from "../../core/clock.ts";

test("VirtualClock stands still until it is advanced", async () => {
  const clock = new VirtualClock({ start: new Date(5_000) });
  await clock.settle();
  assert.equal(clock.now(), 0);
  assert.equal(clock.wallTime(), 5_000);
  await clock.advance("1.5s");
  assert.equal(clock.now(), 1_500);
  assert.equal(clock.wallTime(), 6_500);
});

test("VirtualClock fires timers by due time, then in the order they were set", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ delay: fc.nat(20), cancelled: fc.boolean() })),
      async (timers) => {
        const clock = new VirtualClock({ quietTurns: 1 });
        const fired: number[] = [];
        const handles = timers.map(({ delay }, index) =>
          clock.setTimer(() => {
            assert.equal(clock.now(), delay);
            fired.push(index);
          }, delay)
        );
        timers.forEach(({ cancelled }, index) => {
          if (cancelled) handles[index]?.cancel();
        });
        const expected = timers
          .map(({ delay, cancelled }, index) => ({ delay, cancelled, index }))
          .filter(({ cancelled }) => !cancelled)
          .sort((a, b) => a.delay - b.delay || a.index - b.index)
          .map(({ index }) => index);
        assert.equal(clock.pendingTimers, expected.length);
        await clock.advance(20);
        assert.deepEqual(fired, expected);
        assert.equal(clock.pendingTimers, 0);
      },
    ),
    { numRuns: 50 },
  );
});

test("VirtualClock lets promises settle before the next timer", async () => {
  const clock = new VirtualClock();
  const steps: string[] = [];
  clock.setTimer(async () => {
    for (let step = 0; step < 50; step++) await undefined;
    steps.push(`work of the first at ${clock.now()}`);
  }, 10);
  clock.setTimer(() => steps.push("second"), 11);
  await clock.advance(11);
  assert.deepEqual(steps, ["work of the first at 10", "second"]);
});

test("VirtualClock fires timers that are set while it advances", async () => {
  const clock = new VirtualClock();
  const times: number[] = [];
  const again = () => {
    times.push(clock.now());
    clock.setTimer(again, 100);
  };
  clock.setTimer(again, 100);
  await clock.advance(350);
  assert.deepEqual(times, [100, 200, 300]);
  assert.equal(clock.nextDue, 400);
});

test("VirtualClock runs until a condition holds and not further", async () => {
  const clock = new VirtualClock();
  let count = 0;
  for (const delay of [1_000, 2_000, 3_000]) {
    clock.setTimer(() => count++, delay);
  }
  await clock.runUntil(() => count === 2);
  assert.equal(clock.now(), 2_000);
  assert.equal(count, 2);
});

test("VirtualClock explains why a condition cannot become true", async () => {
  const clock = new VirtualClock();
  await assert.rejects(
    clock.runUntil(() => false, { idleTurns: 2 }),
    /no timer is left/,
  );
  const again = () => clock.setTimer(again, 10);
  again();
  await assert.rejects(
    clock.runUntil(() => false, { limit: 100, idleTurns: 2 }),
    /100 ms passed/,
  );
});

test("VirtualClock reports a timer that rearms itself immediately as a loop", async () => {
  const clock = new VirtualClock({ maxTimers: 20 });
  const again = () => clock.setTimer(again, 0);
  again();
  await assert.rejects(clock.advance(1), /endless loop/);
});

test("VirtualClock stands still while a module is imported", async () => {
  const clock = new VirtualClock();
  const slow = async () => {
    for (let turn = 0; turn < 50; turn++) await nextTurn();
  };
  const times: number[] = [];
  void loadModule(slow()).then(() => {
    times.push(clock.now());
    clock.setTimer(() => times.push(clock.now()), 100);
  });
  await clock.advance(1_000);
  assert.deepEqual(times, [0, 100]);
});

test("VirtualClock rejects concurrent calls that advance it", async () => {
  const clock = new VirtualClock();
  const first = clock.advance(1);
  await assert.rejects(clock.advance(1), /an earlier call is in progress/);
  await first;
});

test("VirtualClock frees a cancelled timer immediately", () => {
  const clock = new VirtualClock();
  const timers = Array.from(
    { length: 1_000 },
    (_, index) => clock.setTimer(() => {}, index),
  );
  for (const timer of timers) timer.cancel();
  for (const timer of timers) timer.cancel();
  assert.equal(clock.pendingTimers, 0);
});

test("VirtualClock rejects invalid options and durations", async () => {
  assert.throws(() => new VirtualClock({ quietTurns: 0 }), RangeError);
  assert.throws(() => new VirtualClock({ start: new Date(NaN) }), RangeError);
  assert.throws(
    () => new VirtualClock({ start: 5 as unknown as Date }),
    /^RangeError: Cannot create a VirtualClock: "start" must be a valid date/,
  );
  await assert.rejects(
    new VirtualClock().runUntil(true as unknown as () => boolean),
    /^TypeError: .*runUntil\(\).*"condition" must be a function/,
  );
  await assert.rejects(new VirtualClock().advance(-1), RangeError);
  await assert.rejects(new VirtualClock().advance(NaN), RangeError);
  await assert.rejects(
    new VirtualClock().advance("1 hour" as "1h"),
    /Cannot read "duration": .*received "1 hour"/,
  );
});

test("VirtualClock starts in 2026 and takes a negative delay for none", async () => {
  const clock = new VirtualClock();
  assert.equal(clock.wallTime(), Date.UTC(2026, 0, 1));
  await clock.advance(10);
  clock.setTimer(() => {}, -5);
  assert.equal(clock.nextDue, 10);
});

test("VirtualClock takes a delay that is no number for none, as setTimeout", async () => {
  const clock = new VirtualClock();
  let fired: number | undefined;
  clock.setTimer(() => void (fired = clock.now()), NaN);
  clock.setTimer(() => {}, 20);
  await clock.advance(10);
  assert.deepEqual([fired, clock.now(), clock.nextDue], [0, 10, 20]);
});

for (
  const [title, turns, use] of [
    ["is quiet for three turns", 3, undefined],
    [
      "sets timers",
      10,
      (clock: VirtualClock) => void clock.setTimer(() => {}, 1_000_000),
    ],
    [
      "cancels timers",
      10,
      (clock: VirtualClock, timers: readonly { cancel(): void }[]) =>
        timers[clock.pendingTimers - 2]?.cancel(),
    ],
  ] as const
) {
  test(`VirtualClock stands still for work that ${title}`, async () => {
    const clock = new VirtualClock();
    const timers = Array.from(
      { length: 20 },
      () => clock.setTimer(() => {}, 2_000_000),
    );
    let ended: number | undefined;
    clock.setTimer(async () => {
      for (let turn = 0; turn < turns; turn++) {
        await nextTurn();
        use?.(clock, timers);
      }
      ended = clock.now();
    }, 10);
    clock.setTimer(() => {}, 11);
    await clock.advance(20);
    assert.equal(ended, 10);
  });
}

test("VirtualClock advances past code that sets a timer in every turn", async () => {
  const clock = new VirtualClock();
  let turns = 0;
  let isOver = false;
  const busy = (async () => {
    for (; !isOver; turns++) {
      await nextTurn();
      clock.setTimer(() => {}, 1_000_000).cancel();
    }
  })();
  await clock.advance(1);
  isOver = true;
  await busy;
  assert(turns < 10_000, `${turns} turns`);
});

test("VirtualClock runs for an hour and a thousand turns by default", async () => {
  const clock = new VirtualClock();
  let isDue = false;
  clock.setTimer(() => void (isDue = true), 59 * 60_000);
  await clock.runUntil(() => isDue);
  let calls = 0;
  await clock.runUntil(() => ++calls > 500);
  assert.equal(clock.now(), 59 * 60_000);
});

test("VirtualClock counts the idle turns since the last timer", async () => {
  const clock = new VirtualClock();
  let calls = 0;
  await clock.runUntil(() => {
    if (++calls % 5 === 0) clock.setTimer(() => {}, 1);
    return calls > 40;
  }, { idleTurns: 10 });
});

test("VirtualClock settles before a condition, which may be a promise", async () => {
  const clock = new VirtualClock();
  let isSettled = false;
  let first: boolean | undefined;
  void nextTurn().then(() => void (isSettled = true));
  for (const delay of [10, 20, 30]) clock.setTimer(() => {}, delay);
  await clock.runUntil(async () => {
    first ??= isSettled;
    return await Promise.resolve(clock.now() >= 20);
  });
  assert.equal(first, true);
  assert.equal(clock.now(), 20);
});

test("VirtualClock awaits each condition of others until it is forgotten", async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const forget = clock.waitFor(async () => {
    await nextTurn();
    asked.push("a");
  });
  clock.waitFor(() => {
    // What it sets must settle, too.
    if (!asked.includes("b")) clock.setTimer(() => {}, 1_000);
    return Promise.resolve(void asked.push("b"));
  });
  await clock.settle();
  assert.deepEqual(asked, ["a", "b", "a", "b"]);
  forget();
  await clock.settle();
  assert.deepEqual(asked.slice(4), ["b"]);
});

test("VirtualClock fires a timer at the limit of a wait, and takes idle turns", async () => {
  const clock = new VirtualClock();
  let fired = false;
  clock.setTimer(() => void (fired = true), 10);
  await clock.runUntil(() => fired, { limit: 10 });
  assert.equal(clock.now(), 10);
  let asked = 0;
  await clock.runUntil(() => ++asked === 3, { idleTurns: 2 });
  await assert.rejects(
    clock.runUntil(() => ++asked === 7, { idleTurns: 2 }),
    /no timer is left$/,
  );
});

test("VirtualClock fires as many timers in one call as it allows", async () => {
  const fired = async (count: number, maxTimers?: number) => {
    const clock = new VirtualClock({ quietTurns: 1, maxTimers });
    for (let timer = 0; timer < count; timer++) clock.setTimer(() => {}, 1);
    await clock.advance(1);
  };
  await fired(3, 3);
  await assert.rejects(
    fired(4, 3),
    /: 3 timers fired in one call, as many as the option maxTimers allows,.* use jump\(\)$/,
  );
  await fired(2_000);
});

test("VirtualClock has no timer that has fired, whose cancellation does nothing", async () => {
  const clock = new VirtualClock();
  let pending: number | undefined;
  const fired: number[] = [];
  const [first, second] = [1, 2, 3, 4].map((delay) =>
    clock.setTimer(() => {
      pending ??= clock.pendingTimers;
      fired.push(delay);
    }, delay)
  );
  await clock.advance(1);
  assert.equal(pending, 3);
  for (const timer of [first, second, second]) timer?.cancel();
  await clock.advance(3);
  assert.deepEqual(fired, [1, 3, 4]);
});

test("VirtualClock stops between two timers that are due together", async () => {
  const clock = new VirtualClock();
  let fired = 0;
  for (let timer = 0; timer < 2; timer++) clock.setTimer(() => fired++, 5);
  await clock.runUntil(() => fired === 1);
  assert.equal(fired, 1);
});

test("VirtualClock stands still for turns after the import of a module", async () => {
  const clock = new VirtualClock();
  const slow = async () => {
    for (let turn = 0; turn < 50; turn++) await nextTurn();
  };
  let ended: number | undefined;
  void loadModule(slow()).then(async () => {
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    ended = clock.now();
  });
  await clock.advance(1_000);
  assert.equal(ended, 0);
});

test("VirtualClock that jumps fires each timer that became due once, at the end", async () => {
  const clock = new VirtualClock();
  const fired: string[] = [];
  const every = () => {
    fired.push(`every at ${clock.now()}`);
    clock.setTimer(every, 1_000);
  };
  clock.setTimer(() => fired.push(`late at ${clock.now()}`), 86_400_000);
  clock.setTimer(every, 1_000);
  clock.setTimer(() => fired.push("never"), 86_400_001);
  await clock.jump("24h");
  assert.deepEqual(fired, ["every at 86400000", "late at 86400000"]);
  assert.equal(clock.now(), 86_400_000);
  await assert.rejects(clock.jump("soon" as "1s"), SyntaxError);
  const moving = clock.jump(1);
  await assert.rejects(clock.jump(1), /an earlier call is in progress/);
  await moving;
});
