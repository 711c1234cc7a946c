import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, MemoryBudget } from "@coracle/operator/client";
import type { ResponseReader } from "../../../../core/cache/watch/response_reader.ts";
import {
  readEvents,
  readPage,
  type ReceiveDeps,
} from "../../../../core/cache/watch/receive.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { nextTurn } from "../../../../core/clock.ts";

const NOTHING = () => undefined;
const CHUNKS = 6;
/** So long that the slice looks at the clock after each of them. */
const EVENT = `{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":"${
  "x".repeat(64 * 1024)
}"}}\n`;

/** A connection that counts how often it is read. */
class CountedExchange {
  readonly action = "watch Widget";
  reads = 0;

  next(): Promise<Uint8Array | undefined> {
    this.reads++;
    return Promise.resolve(
      this.reads > CHUNKS ? undefined : new TextEncoder().encode(EVENT),
    );
  }
}

/** A clock that the test moves, with its timers in a list. */
class HandClock implements Clock {
  time = 0;
  readonly timers: { readonly delay: number; fire(): void }[] = [];

  now(): number {
    return this.time;
  }

  wallTime(): number {
    return this.time;
  }

  setTimer(fire: () => void, delay: number): { cancel(): void } {
    const timer = { delay, fire };
    this.timers.push(timer);
    return {
      cancel: () => void this.timers.splice(this.timers.indexOf(timer), 1),
    };
  }
}

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await nextTurn();
}

function receiving(clock: Clock, more: Partial<ReceiveDeps> = {}): ReceiveDeps {
  return {
    slice: new TimeSlice(clock),
    clock,
    budget: undefined,
    signal: new AbortController().signal,
    onBytes: () => {},
    onIdle: () => {},
    ...more,
  };
}

test("readEvents pauses for as long as many other readers took", async () => {
  const clock = new HandClock();
  const exchanges = Array.from({ length: 5 }, () => new CountedExchange());
  const take = () => {
    clock.time += 10; // the slice is over
    return undefined;
  };
  const read = exchanges.map((exchange) =>
    readEvents(exchange as unknown as ResponseReader, take, receiving(clock))
  );
  await someTurns();
  // The first one has seen the slices of the four others.
  assert.deepEqual(exchanges.map(({ reads }) => reads), [1, 7, 7, 7, 7]);
  assert.deepEqual(clock.timers.map(({ delay }) => delay), [24]);
  clock.timers.shift()?.fire();
  assert.deepEqual(await Promise.all(read), Array(5).fill(CHUNKS));
  assert.equal(clock.timers.length, 0);
});

test("readEvents pauses for at most 250 ms, however many others read", async () => {
  const clock = new HandClock();
  const exchanges = Array.from({ length: 60 }, () => new CountedExchange());
  const take = () => {
    clock.time += 10; // the slice is over
    return undefined;
  };
  const read = Promise.all(
    exchanges.map((exchange) =>
      readEvents(exchange as unknown as ResponseReader, take, receiving(clock))
    ),
  );
  await someTurns();
  assert.equal(Math.max(...clock.timers.map(({ delay }) => delay)), 250);
  while (clock.timers.length > 0) {
    for (const { fire } of clock.timers.splice(0)) fire();
    await someTurns();
  }
  assert.deepEqual(await read, Array(60).fill(CHUNKS));
});

test("readEvents reads on for a whole time slice after a long run", async () => {
  const exchange = new CountedExchange();
  const clock = new HandClock();
  const taken: number[] = [];
  const take = () => {
    taken.push(clock.time);
    if (taken.length > 1) return undefined;
    clock.time += 10; // the slice is over
    setImmediate(() => clock.time += 700); // a run
    return undefined;
  };
  const read = readEvents(
    exchange as unknown as ResponseReader,
    take,
    receiving(clock),
  );
  // The events that have come during the run cause one more run together.
  assert.equal(await read, CHUNKS);
  assert.deepEqual(taken, [0, 710, 710, 710, 710, 710]);
  assert.equal(clock.timers.length, 0);
});

test("readEvents evicts objects before it reads on when the budget is exceeded", async () => {
  const exchange = new CountedExchange();
  const clock = new HandClock();
  const budget = new MemoryBudget(100);
  const held: number[] = [];
  const member = {
    demotableBytes: 0,
    demote() {
      this.demotableBytes -= 10;
      budget.charge(this, this.demotableBytes);
    },
  };
  const take = () => {
    held.push(member.demotableBytes);
    member.demotableBytes = 1000;
    budget.charge(member, member.demotableBytes);
    return undefined;
  };
  const exchanged = exchange as unknown as ResponseReader;
  const events = await readEvents(
    exchanged,
    take,
    receiving(clock, { budget }),
  );
  assert.equal(events, CHUNKS);
  assert.deepEqual(held, [0, 100, 100, 100, 100, 100]);
});

test("readEvents continues when nothing is left to evict", async () => {
  const clock = new HandClock();
  const budget = new MemoryBudget(1);
  budget.charge({
    demotableBytes: 0,
    demote: () => assert.fail("nothing is demotable"),
  }, 99);
  const exchange = new CountedExchange() as unknown as ResponseReader;
  const events = readEvents(exchange, NOTHING, receiving(clock, { budget }));
  assert.equal(await events, CHUNKS);
});

const PAGE = [
  '{"kind":"WidgetList","metadata":{"resourceVersion":"1"},"items":[',
  ...Array.from(
    { length: 4 },
    (_, i) => `${i === 0 ? "" : ","}{"metadata":{"name":"a${i}"}}`,
  ),
  "]}",
];

for (const what of ["readEvents", "readPage"] as const) {
  test(`${what} reads nothing more while the process must wait for memory`, async () => {
    const clock = new HandClock();
    let isGrowing = true;
    const budget = {
      mustWait: () => isGrowing,
      settle: () => true,
      pressure: {
        get isGrowing() {
          return isGrowing;
        },
      },
    } as unknown as MemoryBudget;
    const chunks = what === "readPage" ? PAGE : Array(6).fill(EVENT);
    let reads = 0;
    const response = {
      action: "read Widgets",
      next: () => {
        const chunk = chunks[reads++];
        return Promise.resolve(chunk && new TextEncoder().encode(chunk));
      },
    } as unknown as ResponseReader;
    const deps = receiving(clock, { budget });
    const read = what === "readPage"
      ? readPage(response, () => {}, deps)
      : readEvents(response, NOTHING, deps);
    for (const expected of [1, 2, 3]) {
      await someTurns();
      assert.equal(reads, expected);
      assert.deepEqual(clock.timers.map(({ delay }) => delay), [50]);
      clock.timers.shift()?.fire();
    }
    isGrowing = false;
    await read;
    assert.equal(reads, chunks.length + 1);
  });
}

test("readEvents waits for what an event began before it takes the next", async () => {
  const order: string[] = [];
  let count = 0;
  await readEvents(
    new CountedExchange() as unknown as ResponseReader,
    async () => {
      const number = ++count;
      await nextTurn();
      order.push(`${number} of ${count}`);
    },
    receiving(new HandClock()),
  );
  assert.deepEqual(
    order,
    Array.from({ length: CHUNKS }, (_, i) => `${i + 1} of ${i + 1}`),
  );
});

/** A response of these chunks. */
function responseOf(...chunks: readonly string[]): ResponseReader {
  const left = [...chunks];
  return {
    action: "read Widgets",
    next: () => {
      const chunk = left.shift();
      return Promise.resolve(chunk && new TextEncoder().encode(chunk));
    },
  } as unknown as ResponseReader;
}

test("readEvents refuses a stream that ends within a line", async () => {
  const whole = '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n';
  const deps = receiving(new HandClock());
  assert.equal(await readEvents(responseOf(whole, whole), NOTHING, deps), 2);
  await assert.rejects(
    readEvents(responseOf(whole, whole.slice(0, 7)), NOTHING, deps),
    /^ConnectionFault: Cannot read Widgets: .*received the first 7 bytes/,
  );
});

test("readPage refuses what is no list, or has no version", async () => {
  const read = (kind: string, resourceVersion: string) =>
    readPage(
      responseOf(JSON.stringify({ kind, metadata: { resourceVersion } })),
      () => {},
      receiving(new HandClock()),
    );
  assert.equal((await read("WidgetList", "5")).resourceVersion, "5");
  for (const [kind, version] of [["Status", "5"], ["WidgetList", ""]]) {
    await assert.rejects(
      read(kind!, version!),
      /^ConnectionFault: Cannot read Widgets: the response must be a list/,
    );
  }
});

test("Readers report each chunk, and each time that they wait for the next", async () => {
  const calls: string[] = [];
  const deps = receiving(new HandClock(), {
    onBytes: () => void calls.push("bytes"),
    onIdle: () => void calls.push("idle"),
  });
  await readEvents(responseOf("\n", "\n"), NOTHING, deps);
  assert.deepEqual(calls.splice(0), ["bytes", "idle", "bytes", "idle"]);
  const parts = ['{"kind":"List","metadata":{"resource', 'Version":"1"}}'];
  await readPage(responseOf(...parts), () => {}, deps);
  assert.deepEqual(calls, ["bytes", "idle", "bytes", "idle"]);
});

test("readEvents takes nothing more after a slice in which it was stopped", async () => {
  const clock = new HandClock();
  const stop = new AbortController();
  let taken = 0;
  const take = () => {
    taken++;
    clock.time += 10; // the slice is over
    stop.abort(new Error("stopped"));
    return undefined;
  };
  const deps = receiving(clock, { signal: stop.signal });
  const reader = new CountedExchange() as unknown as ResponseReader;
  await assert.rejects(readEvents(reader, take, deps), /stopped/);
  assert.equal(taken, 1);
});

test("TimeSlice counts a fixed cost for each step, in addition to its bytes", () => {
  const clock = new HandClock();
  const slice = new TimeSlice(clock);
  clock.time = 6;
  const stepsOf = (bytes: number) => {
    for (let steps = 1; steps < 1_000; steps++) {
      if (slice.step(bytes)) return steps;
    }
    return Infinity;
  };
  assert.deepEqual([0, 2 * 1024, 64 * 1024, 0].map(stepsOf), [32, 16, 1, 32]);
});
