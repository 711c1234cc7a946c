import assert from "node:assert/strict";
import { noUpdate, patchStatus } from "@coracle/operator/core";
import { Event } from "@coracle/operator/kinds";
import { pollingSource } from "@coracle/operator/sources";
import { pause, startGadgets } from "../support/gadget_runs.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";
import { until } from "../support/until.ts";

const exact = { jitter: 0 } as const;

/** Reason, message and count of the Events, by reason. */
async function eventsOf(
  fixture: OperatorFixture,
): Promise<[string, string, number][]> {
  const { items } = await fixture.client.list(Event, {
    namespace: "default",
    fieldSelector: "involvedObject.kind=Gadget",
  });
  return items.map(({ reason = "", message = "", count = 0 }): [
    string,
    string,
    number,
  ] => [reason, message, count]).sort(([a], [b]) => a < b ? -1 : 1);
}

scenario(
  "A run that fails three times and then succeeds runs four times [RetryIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {
      if (runs.length <= 3) throw new Error("Not yet");
      return patchStatus({ value: "done" });
    }, { retry: { ...exact, initial: "1s", multiplier: 2, maxAttempts: 5 } });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "done"
    );
    const start = runs[0]?.at ?? 0;
    assert.deepEqual(
      runs.map(({ attempt, last, at }) => [
        attempt,
        last,
        Math.round(at - start),
      ]),
      [
        [0, false, 0],
        [1, false, 1_000],
        [2, false, 3_000],
        [3, false, 7_000],
      ],
    );
  },
);

scenario(
  "After the last attempt nothing runs until a change [RetryMaxAttemptIT]",
  async (fixture) => {
    const { operator, runs } = await startGadgets(fixture, () => {
      throw new Error("Never");
    }, {
      retry: { ...exact, initial: "100ms", maxAttempts: 3 },
      maxInterval: false,
    });
    await fixture.create("a");
    await fixture.advance(600_000);
    assert.equal(runs.length, 4);
    assert.equal(operator.health().controllers[0]?.exhausted, 1);
    assert.match(
      operator.metrics(),
      /coracle_retries_exhausted\{controller="gadget"\} 1/,
    );
    const errors = fixture.log.filter(({ level, fields }) =>
      level === "error" && fields["object"] === "default/a"
    );
    assert.match(errors[0]?.message ?? "", /no retry is left/);
    assert.match(
      operator.metrics(),
      /coracle_reconciliations_total\{controller="gadget",result="failure"\} 4/,
    );
    await fixture.until(async () => (await eventsOf(fixture)).length === 2);
    assert.deepEqual(await eventsOf(fixture), [
      ["RetriesExhausted", "Never", 1],
      ["RunFailed", "Never", 3],
    ]);
    assert.equal(operator.why("default/a")[0]?.exhausted, true);
    await fixture.change("a", { value: "second" });
    await fixture.advance(60_000);
    assert.equal(runs.length, 5);
    assert.equal(errors.length, 1, "once");
    assert.match(
      operator.metrics(),
      /coracle_retries_exhausted\{controller="gadget"\} 1/,
    );
  },
);

scenario(
  "By default a failed run and a failed cleanup are repeated until they succeed",
  async (fixture) => {
    let isDown = true;
    const work = () => {
      if (isDown) throw new Error("The database is down");
    };
    const { operator, runs } = await startGadgets(fixture, work, {
      cleanup: work,
    });
    await fixture.create("a");
    await fixture.create("b");
    await fixture.until(() => runs.length === 2);
    await fixture.client.delete(Gadget, { namespace: "default", name: "b" });
    await fixture.advance(600_000);
    const gauge = (name: string) =>
      Number(
        operator.metrics().match(
          new RegExp(`^${name}\\{controller="gadget"\\} (.+)$`, "m"),
        )?.[1],
      );
    assert.equal(gauge("coracle_failing_objects"), 2);
    const oldest = gauge("coracle_oldest_failure_seconds");
    assert.ok(oldest >= 600 && oldest < 660, `${oldest} s`);
    assert.ok(runs.every(({ last }) => !last));
    const levels = (key: string) =>
      fixture.log.filter(({ message, fields }) =>
        message.startsWith("Run failed") && fields["object"] === key
      ).map(({ level }) => level);
    assert.deepEqual(levels("default/a").slice(0, 9), Array(9).fill("warn"));
    assert.deepEqual(
      levels("default/a").filter((level) => level === "error"),
      ["error"],
    );
    // Events are written in the background.
    await fixture.until(async () =>
      (await eventsOf(fixture)).every(([, , count]) => count > 8)
    );
    assert.deepEqual(
      (await eventsOf(fixture)).map(([reason]) => reason),
      ["RunFailed", "RunFailed"],
    );
    isDown = false;
    await fixture.advance(330_000);
    assert.equal(await fixture.gadget("b"), undefined);
    assert.equal(gauge("coracle_failing_objects"), 0);
    assert.equal(gauge("coracle_oldest_failure_seconds"), 0);
  },
);

scenario(
  "A source that works again repeats the failed runs within the initial pause",
  async (fixture) => {
    let isDown = false;
    const check = () => {
      if (isDown) throw new Error("The database is down");
    };
    const polls = pollingSource<Gadget, string>({
      name: "database",
      interval: "10s",
      fetch() {
        check();
        return new Map();
      },
    });
    let drawn = 0;
    const { runs } = await startGadgets(fixture, check, {
      sources: [polls],
      operator: { random: () => (drawn++ * 0.37) % 1 },
    });
    isDown = true;
    for (const name of ["a", "b", "c"]) await fixture.create(name);
    await fixture.advance(1_000_000);
    isDown = false;
    const before = runs.length;
    const at = fixture.clock.now();
    await fixture.until(() => runs.length === before + 3);
    assert.ok(fixture.clock.now() - at <= 11_001);
    const starts = new Set(runs.slice(before).map((run) => run.at));
    assert.equal(starts.size, 3, "spread");
    await fixture.advance(400_000);
    assert.equal(runs.length, before + 3, "all succeeded");
  },
);

scenario(
  "Changes during a long backoff run immediately and use no attempt [RetryIntervalHonoredOnFrequentEventsIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {
      throw new Error("Never");
    }, { retry: { ...exact, initial: "1m", max: "1m", maxAttempts: 5 } });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    for (let index = 0; index < 10; index++) {
      await fixture.change("a", { value: `value-${index}` });
      await fixture.advance(3_000);
    }
    assert.ok(runs.length > 5, `${runs.length} runs`);
    const attempts = new Set(runs.slice(1).map(({ attempt }) => attempt));
    assert.deepEqual([...attempts], [1]);
  },
);

scenario(
  "onError reports each attempt in the status [ErrorStatusHandlerIT]",
  async (fixture) => {
    const told: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {
        throw new Error("Broken");
      },
      onError(gadget, error, ctx) {
        const { attempt, last } = ctx.retry;
        told.push(`${(error as Error).message} ${attempt} ${last}`);
        const messages = [
          ...gadget.status?.messages ?? [],
          `attempt ${attempt}`,
        ];
        return patchStatus({ messages });
      },
    }, { retry: { ...exact, initial: "100ms", maxAttempts: 3 } });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => told.length === 4);
    await fixture.settle();
    assert.deepEqual(told, [
      "Broken 0 false",
      "Broken 1 false",
      "Broken 2 false",
      "Broken 3 true",
    ]);
    assert.deepEqual((await fixture.gadget("a"))?.status?.messages, [
      "attempt 0",
      "attempt 1",
      "attempt 2",
      "attempt 3",
    ]);
  },
);

scenario(
  "onError may end the retries or replace them by a delay [J29]",
  async (fixture) => {
    const { operator, runs } = await startGadgets(fixture, () => {
      throw new Error("Broken");
    }, {
      onError(gadget) {
        const result = patchStatus({ value: gadget.spec.value });
        return gadget.spec.value === "final"
          ? result.withoutRetry()
          : result.rescheduleAfter("7s");
      },
    });
    await fixture.create("a", { value: "final" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "final"
    );
    await fixture.advance(600_000);
    assert.equal(runs.length, 1);
    await fixture.change("a", { value: "later" });
    await fixture.until(() => runs.length === 2);
    const at = fixture.clock.now();
    await fixture.until(() => runs.length === 3);
    assert.equal(Math.round(fixture.clock.now() - at), 7_000);
    assert.match(
      operator.metrics(),
      /result="failure"\} 3/,
      "a failure is a failure",
    );
    assert.match(
      operator.metrics(),
      /^coracle_failing_objects\{controller="gadget"\} 1$/m,
    );
    assert.equal(operator.health().controllers[0]?.failing, 1);
    const failures = fixture.log.filter(({ message }) =>
      message.startsWith("Run failed")
    );
    assert.deepEqual(
      failures.map(({ level, fields }) => [level, fields["failures"]]),
      [["warn", 1], ["warn", 2], ["warn", 3]],
    );
  },
);

scenario(
  "Errors of onError and of its status write do not hide the original error [J30]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {
        throw new Error("The first");
      },
      onError(gadget) {
        if (gadget.spec.value === "throws") throw new Error("The second");
        return patchStatus({ value: 7 } as never);
      },
    });
    await fixture.start(operator);
    await fixture.create("a", { value: "throws" });
    await fixture.create("b", { value: "invalid" });
    await fixture.until(() =>
      fixture.log.filter(({ message }) => message.startsWith("Run failed"))
        .length >= 2
    );
    for (
      const { fields, level } of fixture.log.filter(({ message }) =>
        message.startsWith("Run failed")
      )
    ) {
      assert.match(String(fields["error"]), /The first/);
      assert.equal(level, "warn", "no status says it");
    }
    const told = fixture.log.map(({ message, fields }) =>
      `${message}: ${fields["error"]}`
    ).join("\n");
    assert.match(told, /onError has thrown: Error: The second/);
    assert.match(
      told,
      /Cannot write the status of a failed run: TypeError: .*status\.value/,
    );
  },
);

scenario(
  "Without events an object runs once per interval [MaxIntervalIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {}, {
      maxInterval: "50ms",
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.advance(500);
    assert.equal(runs.length, 11);
  },
);

scenario(
  "The interval continues after the last retry [MaxIntervalAfterRetryIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {
      throw new Error("Never");
    }, {
      retry: { ...exact, initial: "10ms", max: "10ms", maxAttempts: 1 },
      maxInterval: "10s",
    });
    await fixture.create("a");
    await fixture.advance(60_000);
    assert.ok(runs.length > 5, `${runs.length} runs`);
  },
);

scenario(
  "Five quick changes give one run, and one more after the period [RateLimitIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {}, {
      rateLimit: { limit: 1, period: "3s" },
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    for (let index = 0; index < 5; index++) {
      await fixture.change("a", { value: `value-${index}` });
      await fixture.settle();
    }
    assert.equal(runs.length, 1);
    await fixture.advance(3_000);
    assert.equal(runs.length, 2);
  },
);

scenario(
  "A reconciler knows when a waiting event makes its status write pointless [NextReconciliationImminentIT]",
  async (fixture) => {
    const imminent: boolean[] = [];
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        await pause(fixture, 1_000);
        imminent.push(ctx.nextImminent);
        return ctx.nextImminent
          ? noUpdate()
          : patchStatus({ value: gadget.spec.value });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.settle();
    await fixture.change("a", { value: "second" });
    // In real time: the run must not end before the event has come.
    await until(
      "the change is seen",
      () => controller.primaries.get("default/a")?.spec.value === "second",
    );
    await fixture.until(() => imminent.length === 2);
    await fixture.settle();
    assert.deepEqual(imminent, [true, false]);
    const writes = fixture.requests.filter(({ verb, subresource }) =>
      verb === "patch" && subresource === "status"
    );
    assert.equal(writes.length, 1);
  },
);

scenario(
  "A requested delay is kept although an event causes a run before it [3.9.5]",
  async (fixture) => {
    const causes: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        causes.push(ctx.cause.type);
        await pause(fixture, 100);
        return causes.length === 1
          ? noUpdate().rescheduleAfter("10s")
          : noUpdate();
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => causes.length === 1);
    await fixture.change("a", { value: "second" });
    await fixture.advance(20_000);
    assert.deepEqual(causes, ["added", "modified", "reschedule"]);
  },
);

scenario(
  "A run beyond its timeout is aborted and counts as failed [#2702]",
  async (fixture) => {
    const reasons: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        if (ctx.retry.attempt > 0) return patchStatus({ value: "done" });
        await new Promise<void>((resolve) => {
          ctx.signal.addEventListener("abort", () => {
            reasons.push(String(ctx.signal.reason));
            resolve();
          });
        });
        return patchStatus({ value: "late" });
      },
    }, { timeout: "30s" });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "done"
    );
    assert.match(reasons[0] ?? "", /longer than its timeout/);
  },
);

scenario(
  "A run that ignores its abort shows in log, health, metrics and history",
  async (fixture) => {
    let end: (() => void) | undefined;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: () => new Promise<void>((resolve) => end ??= resolve),
    }, { timeout: "30s" });
    await fixture.start(operator);
    await fixture.create("a");
    const warnings = () =>
      fixture.log.filter(({ message }) =>
        message.startsWith("A run continues")
      );
    await fixture.until(() => warnings().length === 1);
    assert.deepEqual(warnings()[0], {
      level: "warn",
      message:
        "A run continues although its signal was aborted: its object waits until it ends",
      fields: {
        controller: "gadget",
        object: "default/a",
        because: "timeout",
        abortedFor: 10_000,
        runningFor: 40_000,
      },
    });
    const overdue = () => operator.health().controllers[0]?.overdue;
    assert.equal(overdue(), 1);
    assert.match(
      operator.metrics(),
      /^coracle_reconciliations_overdue\{controller="gadget"\} 1$/m,
    );
    assert.equal(operator.why("default/a")[0]?.aborted?.because, "timeout");
    end?.();
    await fixture.until(() => overdue() === 0);
    assert.equal(operator.why("default/a")[0]?.aborted, undefined);
  },
);
