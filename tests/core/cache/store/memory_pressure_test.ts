import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResponseReader } from "../../../../core/cache/watch/response_reader.ts";
import { MemoryBudget } from "../../../../core/cache/store/memory_budget.ts";
import { MemoryPressure } from "../../../../core/cache/store/memory_pressure.ts";
import { readEvents } from "../../../../core/cache/watch/receive.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { type LogFields, silentLogger } from "../../../../core/logger.ts";
import { VirtualClock } from "../../../../testing/virtual_clock.ts";

/** A process of which the test says what it uses, of 1,000 bytes. */
class Process {
  readonly clock = new VirtualClock();
  readonly warned: LogFields[] = [];
  used = 0;
  looks = 0;
  readonly pressure = new MemoryPressure({
    limit: 1_000,
    used: () => {
      this.looks++;
      return this.used;
    },
    clock: this.clock,
    log: {
      ...silentLogger,
      warn: (_message, fields = {}) => this.warned.push(fields),
    },
  });

  /** A second later it uses so much, and caches hold so much of it. */
  async uses(used: number, held = 400): Promise<MemoryPressure> {
    this.used = used;
    await this.clock.advance(1_000);
    this.pressure.measure(held);
    return this.pressure;
  }
}

test("MemoryPressure measures at most once a second", async () => {
  const one = new Process();
  for (let look = 0; look < 5; look++) one.pressure.measure(0);
  assert.equal(one.looks, 1);
  await one.clock.advance(999);
  one.pressure.measure(0);
  assert.equal(one.looks, 1);
  await one.clock.advance(1);
  one.pressure.measure(0);
  assert.equal(one.looks, 2);
});

test("MemoryPressure slows filling at four fifths while the usage grows", async () => {
  const one = new Process();
  assert.equal((await one.uses(799)).isHigh, false);
  assert.equal((await one.uses(800)).isGrowing, true);
  await one.clock.advance(9_999);
  assert.equal(one.pressure.isGrowing, true);
  await one.clock.advance(1);
  assert.deepEqual([one.pressure.isHigh, one.pressure.isGrowing], [
    true,
    false,
  ]);
  assert.equal((await one.uses(809)).isGrowing, false, "less than a hundredth");
  assert.equal((await one.uses(810)).isGrowing, true);
  assert.equal(one.pressure.cap, Infinity);
  assert.deepEqual(one.warned, []);
});

test("MemoryPressure shrinks caches by an eighth as usage grows above nine tenths", async () => {
  const one = new Process();
  assert.equal((await one.uses(900)).cap, 350);
  assert.equal((await one.uses(909, 350)).cap, 350, "no growth");
  assert.equal((await one.uses(895, 350)).cap, 350);
  assert.equal((await one.uses(912, 350)).cap, 306.25);
  assert.deepEqual(one.warned, [{ used: 900, limit: 1_000, caches: 400 }]);
});

test("MemoryPressure ends below three quarters", async () => {
  const one = new Process();
  await one.uses(950);
  for (const used of [799, 750]) {
    assert.deepEqual(
      [(await one.uses(used)).isHigh, one.pressure.cap],
      [true, 350],
    );
  }
  assert.deepEqual(
    [(await one.uses(749)).isHigh, one.pressure.cap],
    [false, Infinity],
  );
  assert.equal((await one.uses(799)).isHigh, false);
  assert.equal((await one.uses(900)).cap, 350, "it begins anew");
  assert.equal(one.warned.length, 1, "it is told once");
});

test("MemoryPressure rejects a limit that is not a size", () => {
  const { clock } = new Process();
  const make = (limit: never) =>
    new MemoryPressure({ limit, used: () => 0, clock, log: silentLogger });
  assert.throws(() => make("much" as never), SyntaxError);
  assert.throws(() => make(true as never), TypeError);
});

test("MemoryPressure rejects missing options", () => {
  const make = (options: unknown) => new MemoryPressure(options as never);
  assert.throws(() => make(undefined), /Cannot .* a MemoryPressure/);
  assert.throws(() => make({ limit: 5 }), /a MemoryPressure: "used" must be/);
});

test("MemoryBudget shrinks under pressure, at least to an eighth of the limit", async () => {
  const one = new Process();
  const budget = new MemoryBudget(600, { pressure: one.pressure });
  const member = {
    demotableBytes: 400,
    demote() {
      this.demotableBytes -= 10;
      budget.charge(this, this.demotableBytes);
    },
  };
  budget.charge(member, 400);
  assert.deepEqual([budget.limit, budget.allowed, budget.mustWait()], [
    600,
    600,
    false,
  ]);
  await one.uses(900);
  assert.deepEqual([budget.limit, budget.allowed, budget.mustWait()], [
    600,
    350,
    true,
  ]);
  budget.settle();
  assert.equal(budget.used, 350);
  for (let used = 910; used <= 1_000; used += 10) {
    await one.uses(used, budget.used);
    budget.settle();
  }
  assert.deepEqual([budget.allowed, budget.used], [125, 120]);
  await one.uses(700);
  assert.deepEqual([budget.allowed, budget.mustWait()], [600, false]);
});

test("MemoryBudget without memory pressure allows its limit", () => {
  const budget = new MemoryBudget(600);
  assert.deepEqual([budget.allowed, budget.mustWait()], [600, false]);
  assert.throws(
    () => new MemoryBudget(600, { presure: 1 } as never),
    /did you mean "pressure"\?/,
  );
});

test("readEvents pauses after each chunk for ten seconds after pressure grew", async () => {
  const one = new Process();
  const { clock, pressure } = one;
  const event = new TextEncoder().encode(
    '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n',
  );
  const readAt: number[] = [];
  const exchange = {
    action: "watch Widget",
    next() {
      readAt.push(clock.now());
      return Promise.resolve(readAt.length > 210 ? undefined : event);
    },
  };
  one.used = 850;
  const reading = readEvents(
    exchange as unknown as ResponseReader,
    () => undefined,
    {
      slice: new TimeSlice(clock),
      clock,
      budget: new MemoryBudget(600, { pressure }),
      signal: new AbortController().signal,
      onBytes() {},
      onIdle() {},
    },
  );
  await clock.advance(60_000);
  assert.equal(await reading, 210);
  const pauses = readAt.slice(1).map((at, index) => at - (readAt[index] ?? 0));
  assert.deepEqual(pauses, [
    ...Array.from({ length: 200 }, () => 50),
    ...Array.from({ length: 10 }, () => 0),
  ]);
});
