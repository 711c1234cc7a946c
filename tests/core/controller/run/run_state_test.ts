import assert from "node:assert/strict";
import { test } from "node:test";
import { exponentialBackoff, noRetry } from "@coracle/operator/core";
import { fc } from "../../../support/property.ts";
import {
  decideAfterRun,
  decideStep,
  FRESH,
  type RunCircumstances,
  type RunEnd,
  type RunState,
  willRetry,
} from "../../../../core/controller/run/run_state.ts";

/** Default of the Java Operator SDK. */
const JOSDK_RETRY = {
  initial: "2s",
  multiplier: 1.5,
  max: "15187ms",
  maxAttempts: 5,
} as const;

function circumstances(
  changes: Partial<RunCircumstances> = {},
): RunCircumstances {
  return {
    now: 1_000_000,
    startedAt: changes.now ?? 1_000_000,
    eventWaiting: false,
    retry: exponentialBackoff({ ...JOSDK_RETRY, jitter: 0 }),
    random: 0,
    maxInterval: 36_000_000,
    ...changes,
  };
}

const failed = { type: "failed", final: false } as const;

test("decideStep adds the finalizer before anything else [J25]", () => {
  const mode = { usesFinalizer: true, allEvents: false };
  const step = (deleting: boolean, hasFinalizer: boolean) =>
    decideStep({ deleting, hasFinalizer, paused: false }, mode);
  assert.equal(step(false, false), "addFinalizer");
  assert.equal(step(false, true), "reconcile");
  assert.equal(step(true, true), "cleanup");
  assert.equal(step(true, false), "nothing");
});

test("decideStep ignores a deletion without finalizers [J26]", () => {
  const mode = { usesFinalizer: false, allEvents: false };
  const object = { deleting: true, hasFinalizer: true, paused: false };
  assert.equal(decideStep(object, mode), "nothing");
  const all = { usesFinalizer: false, allEvents: true };
  assert.equal(decideStep(object, all), "reconcile");
});

test("decideStep does nothing with a paused object", () => {
  const mode = { usesFinalizer: true, allEvents: false };
  for (const deleting of [true, false]) {
    const object = { deleting, hasFinalizer: deleting, paused: true };
    assert.equal(decideStep(object, mode), "paused");
  }
});

test("decideAfterRun resets failures after a success and waits for the interval", () => {
  const state = { ...FRESH, attempt: 3, failures: 3 };
  const plan = decideAfterRun(state, { type: "done" }, circumstances());
  assert.equal(plan.state, FRESH);
  assert.equal(plan.timerAt, 37_000_000);
  assert.equal(plan.timerCause, "interval");
  assert.equal(plan.rescheduleAt, undefined, "an earlier visit stays");
  assert.equal(plan.holdUntil, 0);
});

test("decideAfterRun plans the reschedule that a run asked for [J15]", () => {
  const end = { type: "done", delay: 500 } as const;
  assert.equal(
    decideAfterRun(FRESH, end, circumstances()).rescheduleAt,
    1_000_500,
  );
});

test("decideAfterRun retries with growing delays up to the last attempt [RetryMaxAttemptIT]", () => {
  let state: RunState = FRESH;
  let now = 0;
  const pauses: number[] = [];
  for (;;) {
    const plan = decideAfterRun(state, failed, circumstances({ now }));
    state = plan.state;
    if (plan.failure !== "retry") {
      assert.equal(plan.failure, "exhausted");
      assert.equal(plan.timerAt, now + 36_000_000);
      assert.equal(plan.timerCause, "interval");
      break;
    }
    pauses.push(plan.timerAt - now);
    now = plan.timerAt;
  }
  assert.deepEqual(pauses, [2_000, 3_000, 4_500, 6_750, 10_125]);
  const again = decideAfterRun(state, failed, circumstances({ now }));
  assert.equal(again.failure, "exhausted", "until a run succeeds");
});

test("decideAfterRun uses up no attempt while an event waits, and pauses [3.9.5]", () => {
  let state: RunState = FRESH;
  const holds: number[] = [];
  for (let run = 0; run < 8; run++) {
    const plan = decideAfterRun(
      state,
      failed,
      circumstances({ eventWaiting: true }),
    );
    assert.equal(plan.failure, "event");
    assert.equal(plan.state.attempt, 0);
    holds.push(plan.holdUntil - 1_000_000);
    state = plan.state;
  }
  assert.deepEqual(holds, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
});

test("decideAfterRun keeps a retry that is planned long ahead [RetryIntervalHonoredOnFrequentEventsIT]", () => {
  const state = { ...FRESH, attempt: 1, retryAt: 1_060_000, failures: 1 };
  const plan = decideAfterRun(state, failed, circumstances());
  assert.equal(plan.failure, "kept");
  assert.equal(plan.state.attempt, 1);
  assert.equal(plan.timerAt, 1_060_000);
  const near = decideAfterRun(
    { ...state, retryAt: 1_000_050 },
    failed,
    circumstances(),
  );
  assert.equal(near.failure, "kept", "an event uses no attempt");
  assert.equal(near.timerAt, 1_000_200, "not before the floor");
  const due = { ...state, retryAt: 1_000_000 };
  assert.equal(decideAfterRun(due, failed, circumstances()).failure, "retry");
});

test("decideAfterRun alarms once when the longest pause is reached", () => {
  const retry = exponentialBackoff({ jitter: 0 });
  let state: RunState = FRESH;
  let now = 0;
  const pauses: number[] = [];
  const alarms: number[] = [];
  for (let failure = 1; failure <= 12; failure++) {
    const plan = decideAfterRun(state, failed, circumstances({ now, retry }));
    assert.equal(plan.failure, "retry");
    if (plan.alarm) alarms.push(failure);
    pauses.push((plan.timerAt - now) / 1_000);
    state = plan.state;
    now = plan.timerAt;
  }
  assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  assert.deepEqual(alarms, [10]);
  assert.equal(state.failingSince, 0);
});

test("decideAfterRun alarms once when a finite policy ends", () => {
  let state: RunState = FRESH;
  const alarms: boolean[] = [];
  for (let now = 0; now < 8_000_000; now += 1_000_000) {
    const plan = decideAfterRun(state, failed, circumstances({ now }));
    alarms.push(plan.alarm);
    state = plan.state;
  }
  assert.deepEqual(alarms.map(Number), [0, 0, 0, 0, 0, 1, 0, 0]);
});

test("decideAfterRun does not alarm before a finite policy of equal pauses ends", () => {
  const retry = { maxAttempts: 3, delay: () => 1_000 };
  let state: RunState = FRESH;
  const alarms: boolean[] = [];
  for (let now = 0; now < 40_000; now += 10_000) {
    const plan = decideAfterRun(state, failed, circumstances({ now, retry }));
    alarms.push(plan.alarm);
    state = plan.state;
  }
  assert.deepEqual(alarms, [false, false, false, true]);
});

test("decideAfterRun lets no pause exceed the maximal interval", () => {
  const changes = { retry: exponentialBackoff(), maxInterval: 20_000 };
  const state = { ...FRESH, attempt: 30, failures: 30 };
  const plan = decideAfterRun(state, failed, circumstances(changes));
  assert.equal(plan.timerAt, 1_020_000);
  const fast = decideAfterRun(
    state,
    failed,
    circumstances({ ...changes, maxInterval: 50 }),
  );
  assert.equal(fast.timerAt, 1_000_050);
  assert.equal(fast.holdUntil, 1_000_050);
});

test("decideAfterRun does not end a finite policy by an event before the last retry", () => {
  const state = { ...FRESH, attempt: 5, retryAt: 1_000_001, failures: 5 };
  const early = decideAfterRun(state, failed, circumstances());
  assert.equal(early.failure, "kept");
  const due = circumstances({ startedAt: 1_000_001, now: 1_000_002 });
  assert.equal(decideAfterRun(state, failed, due).failure, "exhausted");
  const waiting = circumstances({ startedAt: 1_000_001, eventWaiting: true });
  assert.equal(decideAfterRun(state, failed, waiting).failure, "event");
});

test("decideAfterRun without retries waits for the interval [3.9.4]", () => {
  const plan = decideAfterRun(FRESH, failed, circumstances({ retry: noRetry }));
  assert.equal(plan.failure, "exhausted");
  assert.equal(plan.state.exhausted, true);
  assert.equal(plan.timerAt, 37_000_000);
});

test("decideAfterRun plans no retry after a final error, which stays a failure [J31]", () => {
  const state = { ...FRESH, attempt: 2, retryAt: 2_000_000, failures: 2 };
  const end = { type: "failed", final: true } as const;
  const plan = decideAfterRun(state, end, circumstances());
  assert.deepEqual(plan, {
    state: {
      ...state,
      retryAt: -Infinity,
      failures: 3,
      failingSince: 1_000_000,
      ruledOut: true,
    },
    timerAt: 37_000_000,
    timerCause: "interval",
    rescheduleAt: undefined,
    holdUntil: 1_000_400,
    failure: "final",
    alarm: false,
  });
});

test("decideAfterRun runs a failing object when onError says, at least 100 ms later", () => {
  const state = { ...FRESH, failures: 5 };
  for (
    const [delay, hold] of [[10, 100], [1_000, 1_000], [60_000, 3_200]] as const
  ) {
    const end = { type: "failed", final: true, delay } as const;
    const plan = decideAfterRun(state, end, circumstances());
    assert.equal(plan.rescheduleAt, 1_000_000 + delay);
    assert.equal(plan.holdUntil, 1_000_000 + hold);
    assert.equal(plan.state.failures, 6);
    assert.equal(plan.state.ruledOut, false);
  }
});

test("decideAfterRun alarms of failures that onError plans for as of retried ones", () => {
  const cases = [
    [exponentialBackoff({ jitter: 0 }), 10],
    [exponentialBackoff(JOSDK_RETRY), 6],
    [noRetry, 1],
  ] as const;
  for (const [retry, first] of cases) {
    for (const delay of [undefined, 1_000]) {
      const end = { type: "failed", final: true, delay } as const;
      let state: RunState = FRESH;
      const alarms: number[] = [];
      for (let failure = 1; failure <= 12; failure++) {
        const plan = decideAfterRun(state, end, circumstances({ retry }));
        if (plan.alarm) alarms.push(failure);
        state = plan.state;
      }
      assert.deepEqual(alarms, [first]);
    }
  }
});

test("decideAfterRun cancels all timers when the finalizer is removed [J19]", () => {
  const plan = decideAfterRun(
    FRESH,
    { type: "finalizerRemoved" },
    circumstances(),
  );
  assert.deepEqual(plan, {
    state: { ...FRESH, leaving: true },
    timerAt: Infinity,
    timerCause: "interval",
    rescheduleAt: Infinity,
    holdUntil: 0,
    failure: undefined,
    alarm: false,
  });
});

test("decideAfterRun always plans a next run or the interval, and never a hot loop", () => {
  fc.assert(fc.property(
    fc.array(fc.record({
      fails: fc.boolean(),
      eventWaiting: fc.boolean(),
      passed: fc.nat(20_000),
    })),
    fc.double({ min: 0, max: 0.999, noNaN: true }),
    (runs, random) => {
      let state: RunState = FRESH;
      let now = 0;
      for (const { fails, eventWaiting, passed } of runs) {
        now += passed;
        const end = fails ? failed : { type: "done" } as const;
        const plan = decideAfterRun(
          state,
          end,
          circumstances({
            now,
            eventWaiting,
            random,
            retry: exponentialBackoff(JOSDK_RETRY),
          }),
        );
        assert.ok(eventWaiting || plan.timerAt < Infinity);
        if (fails) {
          assert.ok(plan.holdUntil >= now + 100);
          assert.ok(plan.timerAt >= plan.holdUntil);
          assert.ok(plan.state.attempt <= 5);
        } else assert.equal(plan.state, FRESH);
        state = plan.state;
      }
    },
  ));
});

test("decideAfterRun keeps a retry that became due while an earlier run failed", () => {
  const state = { ...FRESH, attempt: 1, retryAt: 1_000_000, failures: 1 };
  const plan = decideAfterRun(
    state,
    failed,
    circumstances({ startedAt: 999_999, now: 1_000_500 }),
  );
  assert.equal(plan.failure, "kept");
  assert.equal(plan.state.attempt, 1, "an event uses no attempt");
  assert.equal(plan.timerAt, 1_000_700, "not before the floor");
});

test("decideStep leaves a paused object alone in all-events mode, too", () => {
  const object = { deleting: true, hasFinalizer: true, paused: true };
  for (const usesFinalizer of [false, true]) {
    const mode = { usesFinalizer, allEvents: true };
    assert.equal(decideStep(object, mode), "paused");
  }
});

test("decideAfterRun gives an exhausted object no retry, even if an event waits", () => {
  const state = { ...FRESH, attempt: 1, failures: 9, exhausted: true };
  const { failure, timerAt } = decideAfterRun(
    state,
    failed,
    circumstances({ eventWaiting: true, maxInterval: 5_000 }),
  );
  assert.deepEqual([failure, timerAt], ["exhausted", 1_005_000]);
});

test("willRetry is true for a planned retry or a waiting event", () => {
  const retried = (end: RunEnd, changes: Partial<RunCircumstances> = {}) =>
    willRetry(decideAfterRun(FRESH, end, circumstances(changes)));
  assert.equal(retried(failed), true);
  assert.equal(retried(failed, { eventWaiting: true }), true);
  const endless = { retry: noRetry, maxInterval: Infinity };
  assert.equal(retried(failed, endless), false);
  assert.equal(retried({ type: "failed", final: true }), false);
  assert.equal(retried({ type: "failed", final: true, delay: 0 }), true);
  assert.equal(retried({ type: "done" }), false);
});
