import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  cachingInboundSource,
  perResourcePollingSource,
  pollingSource,
} from "@coracle/operator/sources";
import { sleep } from "../../core/clock.ts";
import { gadget, recordedContext } from "../support/source_context.ts";

const a = gadget("a");
const b = gadget("b");

test("pollingSource has synced after the first fetch and triggers what changed after", async () => {
  const clock = new VirtualClock();
  const context = recordedContext(clock, [a, b, gadget("c")]);
  let state = new Map([["default/a", ["one"]], ["default/b", ["two"]]]);
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => state,
    interval: "5s",
  });
  await source.start(context);
  assert.deepEqual(source.secondaries?.(a), ["one"]);
  assert.ok(context.events.every((event) => event?.initial));
  context.triggered.length = 0;
  await clock.advance(20_000);
  assert.deepEqual(context.triggered, []);
  state = new Map([["default/a", ["changed"]]]);
  await clock.advance(5_000);
  assert.deepEqual(context.triggered.toSorted(), ["default/a", "default/b"]);
  assert.deepEqual(source.secondaries?.(b), []);
  await source.stop();
  await source.poll();
  assert.equal(clock.pendingTimers, 0);
});

test("pollingSource starts while its system is down, and triggers all when it is up", async () => {
  const clock = new VirtualClock();
  const context = recordedContext(clock, [a, b]);
  let fails = 2;
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => {
      if (fails-- > 0) throw new Error("no route");
      return new Map();
    },
  });
  await source.start(context);
  await clock.advance(9_000);
  assert.match(source.health?.().message ?? "", /no route/);
  assert.throws(
    () => source.secondaries?.(a),
    /Cannot read "poll": the external system has not answered yet: .*no route/,
  );
  assert.deepEqual(context.triggered, []);
  await clock.advance(1_000);
  assert.equal(source.health?.().status, "healthy");
  assert.deepEqual(context.retried, ["*"]);
  assert.deepEqual(await source.secondaries?.(a), []);
  assert.deepEqual(context.triggered, ["default/a", "default/b"]);
  const priorities = context.events.map((event) => event?.initial);
  assert.deepEqual(priorities, [true, true], "after live changes");
  await source.stop();
});

test("pollingSource is unhealthy while its fetch names primaries that cannot be", async () => {
  const clock = new VirtualClock();
  const context = recordedContext(clock, [a]);
  const answers = [["a"], ["default/a"]];
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => new Map([[answers.shift()?.[0] ?? "default/a", ["one"]]]),
  });
  await source.start(context);
  assert.match(
    source.health?.().message ?? "",
    /the key of a Gadget is "namespace\/name": received "a"/,
  );
  await clock.advance("5s");
  assert.equal(source.health?.().status, "healthy");
  assert.deepEqual(await source.secondaries?.(a), ["one"]);
  await source.stop();
});

test("pollingSource keeps the last state after an invalid or hanging fetch", async () => {
  const clock = new VirtualClock();
  const context = recordedContext(clock);
  const answers: (() => unknown)[] = [
    () => new Map([["default/a", ["one"]]]),
    () => new Promise(() => {}),
    () => "rubbish",
    () => new Map<string, unknown>([["default/b", ["b"]], ["default/a", "x"]]),
    () => new Map([["default/a", ["two"]]]),
  ];
  let signal: AbortSignal | undefined;
  const source = pollingSource<typeof a, string>({
    name: "poll",
    interval: "1s",
    timeout: "3s",
    fetch: (ctx) => {
      signal = ctx.signal;
      return answers.shift()?.() as Map<string, string[]>;
    },
  });
  await source.start(context);
  await clock.advance(4_000);
  assert.equal(signal?.aborted, true);
  assert.match(source.health?.().message ?? "", /within 3000 ms/);
  assert.deepEqual(source.secondaries?.(a), ["one"]);
  await clock.advance(1_000);
  assert.match(
    source.health?.().message ?? "",
    /must be a Map.*received string/,
  );
  await clock.advance(1_000);
  assert.match(
    source.health?.().message ?? "",
    /resources of default\/a for "poll": they must be a list: received a string/,
  );
  assert.deepEqual(source.secondaries?.(a), ["one"]);
  await clock.advance(1_000);
  assert.equal(source.health?.().status, "healthy");
  assert.deepEqual(source.secondaries?.(a), ["two"]);
  await source.stop();
});

test("pollingSource stops in the middle of a fetch, and can be started again", async () => {
  const clock = new VirtualClock();
  let answer: (value: Map<string, string[]>) => void = () => {};
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => new Promise((resolve) => answer = resolve),
  });
  const context = recordedContext(clock);
  const start = source.start(context);
  await source.stop();
  answer(new Map([["default/a", ["late"]]]));
  await start;
  assert.deepEqual(context.triggered, []);
  assert.equal(clock.pendingTimers, 0);
  const again = source.start(context);
  answer(new Map([["default/a", ["new"]]]));
  await again;
  assert.deepEqual(source.secondaries?.(a), ["new"]);
  await source.stop();
});

test("pollingSource fetches once when it is restarted in the middle of a fetch", async () => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => {
      fetches++;
      return new Promise(() => {});
    },
  });
  const context = recordedContext(clock);
  void source.start(context);
  const stopped = source.stop();
  void source.start(context);
  assert.equal(fetches, 2, "not the fetch of the earlier start");
  await stopped;
  await clock.settle();
  void source.poll();
  assert.equal(fetches, 2);
  await source.stop();
});

test("pollingSource keeps what was created while a fetch was in progress", async () => {
  const clock = new VirtualClock();
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: async () => {
      await sleep(1_000, { clock });
      return new Map<string, string[]>();
    },
    interval: "5s",
  });
  const started = source.start(recordedContext(clock, [a]));
  await clock.advance(6_500);
  await started;
  source.ownExternalWrite?.(a, "mine");
  await clock.advance(1_000);
  assert.deepEqual(source.secondaries?.(a), ["mine"]);
  await clock.advance(6_000);
  assert.deepEqual(source.secondaries?.(a), [], "a later fetch is without it");
  await source.stop();
});

/** Lets a number of microtasks run. */
async function microtasks(count: number): Promise<void> {
  for (let index = 0; index < count; index++) await undefined;
}

test("Polling sources keep nothing of a fetch that ends with their stop", async () => {
  for (let ticks = 0; ticks < 16; ticks++) {
    const answers: ((found: unknown) => void)[] = [];
    const fetch = () =>
      new Promise<never>((resolve) => answers.push(resolve as () => void));
    const sources = [
      pollingSource<typeof a, string>({ name: "all", fetch }),
      perResourcePollingSource<typeof a, string>({ name: "each", fetch }),
    ];
    for (const source of sources) {
      const context = recordedContext(new VirtualClock(), [a]);
      const isPolling = source.name === "all";
      const found = isPolling ? new Map([["default/a", ["one"]]]) : ["one"];
      const started = source.start(context);
      await microtasks(5);
      answers.pop()?.(found);
      await microtasks(ticks);
      const stopped = source.stop();
      const before = context.triggered.length;
      await stopped;
      await started;
      await microtasks(20);
      assert.equal(context.triggered.length, before, `${source.name} ${ticks}`);
      const known = isPolling ? [] : [a];
      const again = recordedContext(new VirtualClock(), known);
      const restarted = source.start(again);
      answers.pop()?.(new Map());
      await restarted;
      assert.deepEqual(again.triggered, [], `${source.name} ${ticks}`);
      if (!isPolling) {
        const read = source.secondaries?.(a);
        await microtasks(5);
        answers.pop()?.(["two"]);
        assert.deepEqual(await read, ["two"], `after ${ticks}`);
      }
      await source.stop();
    }
  }
});

test("pollingSource never fetches twice at the same time, not even at its start", async () => {
  const clock = new VirtualClock();
  let fetching = 0;
  let fetches = 0;
  let end = () => {};
  const source = pollingSource<typeof a, string>({
    name: "poll",
    interval: "5s",
    async fetch() {
      fetches++;
      assert.equal(++fetching, 1);
      await new Promise<void>((resolve) => end = resolve);
      fetching--;
      return new Map();
    },
  });
  const started = source.start(recordedContext(clock));
  const polled = source.poll();
  await clock.settle();
  assert.equal(fetches, 1);
  end();
  await Promise.all([started, polled]);
  assert.equal(source.health?.().status, "healthy");
  await clock.advance(5_000);
  const third = source.poll();
  await clock.settle();
  assert.equal(fetches, 2);
  end();
  await third;
  await source.stop();
});

test("pollingSource refuses an interval of zero", () => {
  assert.throws(
    () => pollingSource({ name: "poll", fetch: () => new Map(), interval: 0 }),
    RangeError,
  );
});

for (const each of [false, true]) {
  const name = each ? "perResourcePollingSource" : "pollingSource";
  test(`${name} ignores a fetch that a failed write has overtaken`, async () => {
    const clock = new VirtualClock();
    const fetches: PromiseWithResolvers<string[]>[] = [];
    const fetch = () => {
      const one = Promise.withResolvers<string[]>();
      fetches.push(one);
      return one.promise;
    };
    const source = each
      ? perResourcePollingSource<typeof a, string>({ name: "poll", fetch })
      : pollingSource<typeof a, string>({
        name: "poll",
        fetch: async () => new Map([["default/a", await fetch()]]),
      });
    const started = source.start(recordedContext(clock, [a]));
    await clock.settle();
    fetches[0]?.resolve(["old"]);
    await started;
    await clock.advance(5_000);
    assert.equal(fetches.length, 2);
    source.ownExternalFailure?.(a);
    const read = source.secondaries?.(a);
    await clock.settle();
    assert.equal(fetches.length, 2, "one at a time");
    fetches[1]?.resolve(["old"]);
    await clock.settle();
    assert.equal(fetches.length, 3);
    fetches[2]?.resolve(["new"]);
    assert.deepEqual(await read, ["new"]);
    await source.stop();
  });
}

test("Polling sources give up a fetch after 30 seconds by default, and abort it", async () => {
  const signals: AbortSignal[] = [];
  const read: unknown[] = [];
  const clock = new VirtualClock();
  const context = recordedContext(clock, [a], {
    get: (_kind, key) => {
      read.push(key);
      return Promise.resolve(undefined);
    },
  });
  const name = "poll";
  const both = [
    pollingSource<typeof a, string>({
      name,
      fetch({ signal }) {
        signals.push(signal);
        return new Promise(() => {});
      },
    }),
    perResourcePollingSource<typeof a, string>({
      name,
      async fetch(_primary, { signal, get }) {
        signals.push(signal);
        await get(ConfigMap);
        return await new Promise(() => {});
      },
    }),
  ];
  const aborted = () => signals.map((signal) => signal.aborted);
  const started = both.map((source) => source.start(context));
  await clock.advance(29_999);
  assert.deepEqual(aborted(), [false, false]);
  assert.deepEqual(read, [{ namespace: "default", name: "a" }]);
  await clock.advance(1);
  assert.deepEqual(aborted(), [true, true]);
  await Promise.all(started);
  await Promise.all(both.map((source) => source.stop()));
});

for (
  const [name, create] of [
    [
      "pollingSource",
      (state: () => string[]) =>
        pollingSource<typeof a, string>({
          name: "poll",
          interval: "1h",
          fetch: () => new Map([["default/a", state()]]),
        }),
    ],
    [
      "perResourcePollingSource",
      (state: () => string[]) =>
        perResourcePollingSource<typeof a, string>({
          name: "poll",
          interval: "1h",
          fetch: state,
        }),
    ],
  ] as const
) {
  test(`${name} asks again before it is read by a replica that begins to lead`, async () => {
    const clock = new VirtualClock();
    let state: string[] = [];
    let isDown = false;
    const source = create(() => {
      if (isDown) throw new Error("no route");
      return state;
    });
    await source.start(recordedContext(clock, [a]));
    await clock.advance("1m");
    state = ["made by another replica"];
    source.onLead?.();
    assert.deepEqual(await source.secondaries?.(a), state);
    isDown = true;
    source.onLead?.();
    await assert.rejects(async () => await source.secondaries?.(a), /no route/);
    isDown = false;
    await clock.advance("1h");
    assert.deepEqual(await source.secondaries?.(a), state);
    await source.stop();
    assert.equal(clock.pendingTimers, 0);
  });
}

test("pollingSource is read after the last of several changes of the leader", async () => {
  const clock = new VirtualClock();
  const answers: ((found: Map<string, string[]>) => void)[] = [];
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => new Promise((resolve) => answers.push(resolve)),
  });
  const answer = (at: number, text: string) =>
    answers[at]?.(new Map([["default/a", [text]]]));
  const started = source.start(recordedContext(clock, [a]));
  await clock.settle();
  answer(0, "first");
  await started;
  source.onLead?.();
  await clock.settle();
  source.onLead?.();
  answer(1, "second");
  await clock.settle();
  assert.equal(answers.length, 3);
  const read = source.secondaries?.(a);
  answer(2, "third");
  assert.deepEqual(await read, ["third"]);
  await source.stop();
});

test("pollingSource is not read after a failed write until it has answered", async () => {
  const clock = new VirtualClock();
  let isDown = false;
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => {
      if (isDown) throw new Error("no route");
      return new Map([["default/a", ["one"]]]);
    },
  });
  await source.start(recordedContext(clock, [a, b]));
  isDown = true;
  source.ownExternalFailure(a);
  await assert.rejects(
    async () => await source.secondaries?.(a),
    /the external system has not answered since a write failed: .*no route/,
  );
  assert.deepEqual(source.secondaries?.(b), []);
  isDown = false;
  assert.deepEqual(await source.secondaries?.(a), ["one"]);
  await source.stop();
});

test("pollingSource is unhealthy until its first fetch has succeeded", async () => {
  const fetched = Promise.withResolvers<Map<string, string[]>>();
  const source = pollingSource<typeof a, string>({
    name: "poll",
    fetch: () => fetched.promise,
  });
  const started = source.start(recordedContext(new VirtualClock(), [a]));
  assert.deepEqual(source.health?.(), {
    status: "unhealthy",
    message: "no fetch has succeeded yet",
  });
  fetched.resolve(new Map());
  await started;
  assert.equal(source.health?.().status, "healthy");
  await source.stop();
});

for (const given of [{ name: "one" }, "one", null, undefined, 1]) {
  test(`Sources refuse ${JSON.stringify(given)} by name where a list is due`, async () => {
    const clock = new VirtualClock();
    const wrong = given as unknown as string[];
    const refusal =
      /Cannot use the resources of default\/a for "odd": they must be a list: received /;
    const all = pollingSource<typeof a, string>({
      name: "odd",
      interval: "1s",
      fetch: () => new Map([["default/b", ["two"]], ["default/a", wrong]]),
    });
    await all.start(recordedContext(clock, [a, b]));
    assert.match(all.health?.().message ?? "", refusal);
    await all.stop();
    const options = { name: "odd", fetch: () => wrong };
    for (
      const source of [
        perResourcePollingSource<typeof a, string>(options),
        cachingInboundSource<typeof a, string>(options),
      ]
    ) {
      await source.start(recordedContext(clock, [a]));
      await assert.rejects(async () => await source.secondaries?.(a), refusal);
      await source.stop();
    }
    const pushed = cachingInboundSource<typeof a, string>({ name: "odd" });
    await pushed.start(recordedContext(clock, [a]));
    assert.throws(() => pushed.pushAll("default/a", wrong), refusal);
    await pushed.stop();
  });
}
