import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type LogFields,
  MemoryBudget,
  silentLogger,
} from "@coracle/operator/client";
import type { ResponseReader } from "../../../../core/cache/watch/response_reader.ts";
import { MemoryPressure } from "../../../../core/cache/store/memory_pressure.ts";
import { readEvents } from "../../../../core/cache/watch/receive.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";

/** Process with 1,000 bytes of memory and a usage set by the test. */
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

  /** Sets the usage of the process and its caches a second later. */
  async uses(used: number, held = 400): Promise<MemoryPressure> {
    this.used = used;
    await this.clock.advance(1_000);
    this.pressure.measure(held);
    return this.pressure;
  }
}

test("MemoryBudget leaves caches an eighth of the memory, within its limit", async () => {
  for (const [held, allowed] of [[400, 350], [100, 125], [0, 125]] as const) {
    const fixture = new Process();
    const pressure = await fixture.uses(950, held);
    const budget = new MemoryBudget(10_000, { pressure });
    assert.equal(budget.allowed, allowed, `caches of ${held} bytes`);
    assert.equal(new MemoryBudget(50, { pressure }).allowed, 50);
    assert.equal((await fixture.uses(700)).cap, Infinity);
    assert.equal(budget.allowed, 10_000);
  }
});

test("MemoryPressure measures at most once a second", async () => {
  const fixture = new Process();
  for (let look = 0; look < 5; look++) fixture.pressure.measure(0);
  assert.equal(fixture.looks, 1);
  await fixture.clock.advance(999);
  fixture.pressure.measure(0);
  assert.equal(fixture.looks, 1);
  await fixture.clock.advance(1);
  fixture.pressure.measure(0);
  assert.equal(fixture.looks, 2);
});

test("MemoryPressure slows filling at four fifths while the usage grows", async () => {
  const fixture = new Process();
  assert.equal((await fixture.uses(799)).isHigh, false);
  assert.equal((await fixture.uses(800)).isGrowing, true);
  await fixture.clock.advance(9_999);
  assert.equal(fixture.pressure.isGrowing, true);
  await fixture.clock.advance(1);
  assert.deepEqual({
    isHigh: fixture.pressure.isHigh,
    isGrowing: fixture.pressure.isGrowing,
  }, { isHigh: true, isGrowing: false });
  assert.equal(
    (await fixture.uses(809)).isGrowing,
    false,
    "less than a hundredth",
  );
  assert.equal((await fixture.uses(810)).isGrowing, true);
  assert.equal(fixture.pressure.cap, Infinity);
  assert.deepEqual(fixture.warned, []);
});

test("MemoryPressure shrinks caches by an eighth as usage grows above nine tenths", async () => {
  const fixture = new Process();
  assert.equal((await fixture.uses(900)).cap, 350);
  assert.equal((await fixture.uses(909, 350)).cap, 350, "no growth");
  assert.equal((await fixture.uses(895, 350)).cap, 350);
  assert.equal((await fixture.uses(912, 350)).cap, 306.25);
  assert.deepEqual(fixture.warned, [{ used: 900, limit: 1_000, caches: 400 }]);
});

test("MemoryPressure ends below three quarters", async () => {
  const fixture = new Process();
  await fixture.uses(950);
  for (const used of [799, 750]) {
    assert.deepEqual(
      [(await fixture.uses(used)).isHigh, fixture.pressure.cap],
      [true, 350],
    );
  }
  assert.deepEqual(
    [(await fixture.uses(749)).isHigh, fixture.pressure.cap],
    [false, Infinity],
  );
  assert.equal((await fixture.uses(799)).isHigh, false);
  assert.equal((await fixture.uses(900)).cap, 350, "it starts over");
  assert.equal(fixture.warned.length, 1, "it is logged once");
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
  const fixture = new Process();
  const budget = new MemoryBudget(600, { pressure: fixture.pressure });
  const member = {
    demotableBytes: 400,
    demote() {
      this.demotableBytes -= 10;
      budget.charge(this, this.demotableBytes);
    },
  };
  budget.charge(member, 400);
  assert.deepEqual({
    limit: budget.limit,
    allowed: budget.allowed,
    mustWait: budget.mustWait(),
  }, { limit: 600, allowed: 600, mustWait: false });
  await fixture.uses(900);
  assert.deepEqual({
    limit: budget.limit,
    allowed: budget.allowed,
    mustWait: budget.mustWait(),
  }, { limit: 600, allowed: 350, mustWait: true });
  budget.settle();
  assert.equal(budget.used, 350);
  for (let used = 910; used <= 1_000; used += 10) {
    await fixture.uses(used, budget.used);
    budget.settle();
  }
  assert.deepEqual({ allowed: budget.allowed, used: budget.used }, {
    allowed: 125,
    used: 120,
  });
  await fixture.uses(700);
  assert.deepEqual({ allowed: budget.allowed, mustWait: budget.mustWait() }, {
    allowed: 600,
    mustWait: false,
  });
});

test("MemoryBudget without memory pressure allows its limit", () => {
  const budget = new MemoryBudget(600);
  assert.deepEqual({ allowed: budget.allowed, mustWait: budget.mustWait() }, {
    allowed: 600,
    mustWait: false,
  });
  assert.throws(
    () => new MemoryBudget(600, { presure: 1 } as never),
    /did you mean "pressure"\?/,
  );
});

test("readEvents pauses after each chunk for ten seconds after pressure grew", async () => {
  const fixture = new Process();
  const { clock, pressure } = fixture;
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
  fixture.used = 850;
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

test("MemoryPressure shrinks caches further each time, whatever they hold", async () => {
  const fixture = new Process();
  assert.equal((await fixture.uses(900, 800)).cap, 700);
  // They could not shrink so far, and may not grow either.
  assert.equal((await fixture.uses(920, 800)).cap, 612.5);
  assert.equal((await fixture.uses(940, 400)).cap, 350);
});
