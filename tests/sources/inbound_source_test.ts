import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  cachingInboundSource,
  inboundSource,
  timerSource,
} from "@coracle/operator/sources";
import { gadget, recordedContext } from "../support/source_context.ts";

const a = gadget("a");
const key = { namespace: "default", name: "a" };

test("inboundSource triggers while it is started and does nothing else", async () => {
  const source = inboundSource("inbound");
  source.trigger(key);
  const context = recordedContext(new VirtualClock());
  await source.start(context);
  source.trigger(key, { kind: "Order" });
  await source.stop();
  source.trigger(key);
  assert.deepEqual(context.triggered, ["default/a"]);
  assert.deepEqual(context.events, [{ kind: "Order" }]);
});

test("cachingInboundSource keeps what was pushed and triggers what changed", async () => {
  const source = cachingInboundSource<typeof a, { id: string; n: number }>({
    name: "pushed",
    id: ({ id }) => id,
  });
  const context = recordedContext(new VirtualClock());
  source.push(key, { id: "early", n: 1 });
  await source.start(context);
  source.push(key, { id: "x", n: 1 });
  source.push(key, { id: "x", n: 1 });
  source.push(key, { id: "y", n: 1 });
  assert.equal(context.triggered.length, 2);
  assert.equal((await source.secondaries?.(a))?.length, 2);
  source.remove(key, "x");
  source.pushAll(key, []);
  assert.equal(context.triggered.length, 4);
  await source.stop();
});

test("cachingInboundSource keeps a limited number of unknown primaries", async () => {
  const source = cachingInboundSource<typeof a, number>({ name: "pushed" });
  const known = gadget("known");
  await source.start(recordedContext(new VirtualClock(), [known]));
  source.push("default/known", 1);
  source.push("default/late", 2);
  const late = gadget("late");
  const lateKey = { namespace: "default", name: "late" };
  source.onPrimary?.({ type: "added", key: lateKey, object: late });
  for (let n = 0; n <= 1_000; n++) source.push(`default/${n}`, n);
  const of = (name: string) => source.secondaries?.(gadget(name));
  assert.deepEqual(await of("known"), [1]);
  assert.deepEqual(await of("late"), [2]);
  assert.deepEqual(await of("0"), []);
  assert.deepEqual(await of("1"), [1]);
  assert.deepEqual(await of("1000"), [1_000]);
  await source.stop();
});

test("cachingInboundSource forgets the unknown primary that was pushed first", async () => {
  const source = cachingInboundSource<typeof a, number>({ name: "pushed" });
  const of = (name: string) => source.secondaries?.(gadget(name));
  await source.start(recordedContext(new VirtualClock()));
  source.push("default/late", 1);
  await source.stop();
  // It was created in between, so that it is known now.
  await source.start(recordedContext(new VirtualClock(), [gadget("late")]));
  source.push("default/late", 2);
  for (let n = 0; n < 1_000; n++) source.push(`default/${n}`, n);
  source.push("default/0", 5);
  source.push("default/more", 6);
  source.push("default/most", 7);
  assert.deepEqual(await of("late"), [2]);
  assert.deepEqual(await of("0"), [5]);
  assert.deepEqual([await of("1"), await of("2")], [[], []]);
  assert.deepEqual(await of("3"), [3]);
  await source.stop();
});

test("cachingInboundSource keeps no unknown primary for an unchanged resource", async () => {
  const source = cachingInboundSource<typeof a, string>({
    name: "pushed",
    fetch: () => ["fetched"],
  });
  await source.start(recordedContext(new VirtualClock()));
  for (let n = 0; n <= 1_000; n++) source.pushAll(`default/${n}`, []);
  const of = (name: string) => source.secondaries?.(gadget(name));
  assert.deepEqual([await of("0"), await of("1")], [["fetched"], []]);
  await source.stop();
});

test("cachingInboundSource fetches once, and passes on that a fetch failed", async () => {
  let fetches = 0;
  const source = cachingInboundSource<typeof a, string>({
    name: "inbound",
    fetch() {
      if (++fetches === 1) throw new Error("no route");
      return [];
    },
  });
  await source.start(recordedContext(new VirtualClock(), [a]));
  const read = async () => await source.secondaries?.(a);
  await assert.rejects(read(), /no route/);
  assert.deepEqual([await read(), await read()], [[], []]);
  assert.equal(fetches, 2);
  await source.stop();
});

test("cachingInboundSource fetches on the first read, and pushed resources win", async () => {
  let answer: (value: string[]) => void = () => {};
  const source = cachingInboundSource<typeof a, string>({
    name: "pushed",
    fetch: () => new Promise<string[]>((resolve) => answer = resolve),
  });
  await source.start(recordedContext(new VirtualClock()));
  const read = source.secondaries?.(a);
  source.push(key, "pushed");
  answer(["fetched"]);
  assert.deepEqual(await read, ["pushed"]);
  source.onPrimary?.({ type: "deleted", key, object: a });
  const again = source.secondaries?.(a);
  answer(["fetched"]);
  assert.deepEqual(await again, ["fetched"]);
  await source.stop();
});

test("cachingInboundSource adds what changes during a fetch to what it finds", async () => {
  const answers: ((found: { id: string; n: number }[]) => void)[] = [];
  const source = cachingInboundSource<typeof a, { id: string; n: number }>({
    name: "pushed",
    id: ({ id }) => id,
    fetch: () => new Promise((resolve) => answers.push(resolve)),
  });
  const known = [a, gadget("b")];
  await source.start(recordedContext(new VirtualClock(), known));
  const read = source.secondaries?.(a);
  source.push(key, { id: "x", n: 2 });
  source.remove(key, "y");
  const second = source.secondaries?.(a);
  answers.shift()?.([
    { id: "x", n: 1 },
    { id: "y", n: 1 },
    { id: "z", n: 1 },
  ]);
  const expected = [{ id: "x", n: 2 }, { id: "z", n: 1 }];
  assert.deepEqual(await read, expected);
  assert.deepEqual(await second, expected, "it is not read in part");
  assert.deepEqual(await source.secondaries?.(a), expected);
  assert.equal(answers.length, 0, "one fetch is enough");
  const other = source.secondaries?.(gadget("b"));
  source.push("default/b", { id: "x", n: 1 });
  source.pushAll("default/b", [{ id: "y", n: 1 }]);
  source.push("default/b", { id: "z", n: 1 });
  answers.shift()?.([{ id: "x", n: 1 }]);
  assert.deepEqual(await other, [{ id: "y", n: 1 }, { id: "z", n: 1 }]);
  await source.stop();
});

test("cachingInboundSource keeps nothing of a fetch that ends after its stop", async () => {
  const answers: ((found: string[]) => void)[] = [];
  const source = cachingInboundSource<typeof a, string>({
    name: "inbound",
    fetch: () => new Promise((resolve) => answers.push(resolve)),
  });
  await source.start(recordedContext(new VirtualClock(), [a]));
  const late = source.secondaries?.(a);
  await source.stop();
  await source.start(recordedContext(new VirtualClock(), [a]));
  answers.shift()?.(["old"]);
  assert.deepEqual(await late, ["old"]);
  const read = source.secondaries?.(a);
  answers.shift()?.(["new"]);
  assert.deepEqual(await read, ["new"]);
  await source.stop();
});

test("cachingInboundSource keeps nothing of a primary deleted during its fetch", async () => {
  let fetches = 0;
  const source = cachingInboundSource<typeof a, string>({
    name: "inbound",
    fetch: (_primary, { signal }) =>
      signal.aborted ? [] : [`answer ${++fetches}`],
  });
  await source.start(recordedContext(new VirtualClock()));
  assert.deepEqual(await source.secondaries?.(a), ["answer 1"]);
  assert.deepEqual(await source.secondaries?.(a), ["answer 2"]);
  await source.stop();
});

test("timerSource triggers once or again and again, until the primary is deleted", async () => {
  const clock = new VirtualClock();
  const context = recordedContext(clock, [a, gadget("b")]);
  const source = timerSource("timer");
  await source.start(context);
  source.schedule(key, { after: "1s" });
  source.schedule("default/b", { every: "2s" });
  await clock.advance(6_000);
  assert.deepEqual(context.triggered, [
    "default/a",
    "default/b",
    "default/b",
    "default/b",
  ]);
  const other = { namespace: "default", name: "b" };
  source.onPrimary?.({ type: "modified", key: other, object: gadget("b") });
  assert.equal(clock.pendingTimers, 1);
  source.onPrimary?.({ type: "deleted", key: other, object: undefined });
  assert.equal(clock.pendingTimers, 0);
  source.schedule(key, { after: "1s" });
  source.schedule(key, { after: "5s" });
  await clock.advance(4_000);
  assert.equal(context.triggered.length, 4, "the newer schedule replaced it");
  source.cancel(key);
  source.schedule(key, { after: "1s", every: "10s" });
  await clock.advance(1_000);
  assert.equal(context.triggered.length, 5);
  await clock.advance(19_999);
  assert.equal(context.triggered.length, 6, "after 1 and 11 seconds");
  assert.deepEqual(context.events, Array(6).fill(undefined));
  await source.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("inboundSource and timerSource refuse an empty name", () => {
  for (const make of [inboundSource, timerSource]) {
    assert.throws(() => make(""), /Cannot .*Source\(\).*"name"/);
  }
});

test("timerSource refuses a schedule without a time", () => {
  const source = timerSource("timer");
  assert.throws(() => source.schedule(key, {}), RangeError);
  assert.throws(() => source.schedule(key, { every: 0 }), RangeError);
  const both = { after: "1s", every: 0 } as const;
  assert.throws(() => source.schedule(key, both), RangeError);
  source.schedule(key, { after: 0 });
});

test("timerSource schedules nothing for a primary that does not exist", async () => {
  const clock = new VirtualClock();
  const source = timerSource("timer");
  await source.start(recordedContext(clock, [a]));
  source.schedule("default/other", { every: "1s" });
  assert.equal(clock.pendingTimers, 0);
  await source.stop();
});
