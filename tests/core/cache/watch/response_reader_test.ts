import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { ApiRequest, HttpResponse } from "@coracle/operator/client";
import { ResponseReader } from "../../../../core/cache/watch/response_reader.ts";

const REQUEST: ApiRequest = {
  verb: "list",
  action: "list Widget",
  method: "GET",
  path: "/widgets",
  headers: {},
};

/** Client whose request is answered with a body. */
function answering(
  body: AsyncIterable<Uint8Array>,
  cancel = () => Promise.resolve(),
) {
  return {
    request: () => Promise.resolve({ status: 200, headers: {}, body, cancel }),
  };
}

test("ResponseReader counts silence only while it is read", async () => {
  const clock = new VirtualClock();
  async function* body(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(new Uint8Array(1));
    await new Promise(() => {}); // nothing else arrives
  }
  const exchange = new ResponseReader(REQUEST, {
    client: answering(body()),
    clock,
    limits: { head: 1_000, silence: 10_000 },
  });
  await exchange.open();
  assert.equal((await exchange.next())?.length, 1);
  // Who reads is busy for long: that is not the peer's fault.
  await clock.advance(1_000_000);
  const silent = assert.rejects(
    exchange.next(),
    /Cannot list Widget: nothing arrived for 10000 ms/,
  );
  await clock.advance(9_999);
  await clock.advance(1);
  await silent;
  await clock.advance(20_000);
  assert.equal(clock.pendingTimers, 0);
});

test("ResponseReader that is closed as its head arrives reads no body", async () => {
  const clock = new VirtualClock();
  let cancelled = 0;
  const head = Promise.withResolvers<HttpResponse>();
  const body = { [Symbol.asyncIterator]: () => assert.fail("It is read") };
  const exchange = new ResponseReader(REQUEST, {
    client: { request: () => head.promise },
    clock,
    limits: { head: 1_000, silence: 10_000 },
  });
  const opened = exchange.open();
  // After the reader has got the head, and before who opened it goes on.
  head.promise.then(() => exchange.close(new Error("enough")));
  head.resolve({
    ...{ status: 200, headers: {}, body },
    cancel: () => Promise.resolve(void cancelled++),
  });
  await assert.rejects(opened, /^Error: enough$/);
  assert.equal(cancelled, 1);
  assert.equal(clock.pendingTimers, 0);
});

test("ResponseReader ends a silent body in time although a head may be later", async () => {
  const clock = new VirtualClock();
  async function* body(): AsyncGenerator<Uint8Array> {
    yield await new Promise<never>(() => {});
  }
  const exchange = new ResponseReader(REQUEST, {
    client: answering(body()),
    clock,
    limits: { head: 75_000, silence: 10_000 },
  });
  await exchange.open();
  let why = "";
  exchange.next().catch((error: unknown) => why = String(error));
  await clock.advance(9_999);
  assert.equal(why, "");
  await clock.advance(1);
  assert.match(why, /Cannot list Widget: nothing arrived for 10000 ms/);
});

test("ResponseReader cancels a response that comes after its limit", async () => {
  const clock = new VirtualClock();
  const late = Promise.withResolvers<HttpResponse>();
  let cancelled = 0;
  const exchange = new ResponseReader(REQUEST, {
    client: { request: () => late.promise },
    clock,
    limits: { head: 1_000, silence: 10_000 },
  });
  const overdue = assert.rejects(
    exchange.open(),
    /Cannot list Widget: nothing arrived for 1000 ms/,
  );
  await clock.advance(1_000);
  await overdue;
  // Not every transport heeds the signal of the request.
  late.resolve({
    status: 200,
    headers: {},
    body: { async *[Symbol.asyncIterator]() {} },
    cancel: () => Promise.resolve(void cancelled++),
  });
  await clock.settle();
  assert.equal(cancelled, 1);
});

test("ResponseReader that is closed ends all that it has begun", async () => {
  const clock = new VirtualClock();
  const reason = new Error("enough");
  for (const isOpen of [false, true]) {
    const signals: (AbortSignal | undefined)[] = [];
    let left = 0;
    const body: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: () => {
          left++;
          return Promise.reject(new Error("broken"));
        },
      }),
    };
    const cancel = () => Promise.reject(new Error("broken"));
    const reader = new ResponseReader(REQUEST, {
      client: {
        request: ({ signal }) => {
          signals.push(signal);
          return isOpen
            ? Promise.resolve({ status: 200, headers: {}, body, cancel })
            : new Promise(() => {});
        },
      },
      clock,
      limits: { head: 1_000, silence: 1_000, total: 10_000 },
    });
    const opened = reader.open();
    if (isOpen) await opened;
    const ended = assert.rejects(isOpen ? reader.next() : opened, reason);
    assert.equal(clock.pendingTimers, 1);
    reader.close(reason);
    await ended;
    reader.expectWithin(1_000);
    assert.equal(clock.pendingTimers, 0);
    assert.equal(signals[0]?.reason, reason);
    assert.equal(left, isOpen ? 1 : 0);
    assert.equal(await reader.next(), undefined);
    reader.close();
    assert.equal(left, isOpen ? 1 : 0);
    await clock.settle();
  }
});

test("ResponseReader that was closed before sends nothing that is kept", async () => {
  const clock = new VirtualClock();
  const reason = new Error("enough");
  let cancelled = 0;
  const body = { async *[Symbol.asyncIterator]() {} };
  const cancel = () => {
    cancelled++;
    return Promise.reject(new Error("broken"));
  };
  const reader = new ResponseReader(REQUEST, {
    client: answering(body, cancel),
    clock,
    limits: { head: 1_000, silence: 1_000 },
  });
  reader.close(reason);
  await assert.rejects(reader.open(), reason);
  await clock.settle();
  assert.equal(cancelled, 1);
  assert.equal(clock.pendingTimers, 0);
});

test("ResponseReader has one timer, however often its limit changes", async () => {
  const { clock, reader } = spoken({ silence: 10_000 });
  await reader.open();
  for (let i = 0; i < 5; i++) reader.expectWithin(5_000);
  assert.equal(clock.pendingTimers, 1);
  await clock.advance(700);
  assert.equal(reader.age, 700);
  assert.equal(reader.sinceProgress, 700);
  reader.progress();
  await clock.advance(300);
  assert.equal(reader.sinceProgress, 300);
  assert.equal(reader.age, 1_000);
  reader.close();
});

/** A response with a byte each time that the test says so. */
function spoken(
  limits: { readonly silence: number; readonly total?: number },
) {
  const clock = new VirtualClock();
  let speak = () => {};
  async function* body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      await new Promise<void>((resolve) => speak = resolve);
      yield new Uint8Array(1);
    }
  }
  const reader = new ResponseReader({ ...REQUEST, action: "watch Widget" }, {
    client: answering(body()),
    clock,
    limits: { head: 1_000, ...limits },
  });
  return { clock, reader, speak: () => speak() };
}

test("ResponseReader counts silence from the last bytes", async () => {
  const { clock, reader, speak } = spoken({ silence: 10_000 });
  await reader.open();
  let why = "";
  let reads = 0;
  const read = () => {
    reader.next().then(() => {
      reads++;
      read();
    }, (error: unknown) => why = String(error));
  };
  read();
  for (let count = 1; count <= 3; count++) {
    await clock.advance(6_000);
    speak();
    await clock.settle();
    assert.deepEqual([reads, why], [count, ""]);
  }
  await clock.advance(9_999);
  assert.equal(why, "");
  await clock.advance(1);
  assert.match(why, /Cannot watch Widget: nothing arrived for 10000 ms$/);
});

test("ResponseReader ends a stream that the server does not end in time", async () => {
  const limits = { silence: Infinity, total: 30_000 };
  const { clock, reader } = spoken(limits);
  await reader.open();
  let why = "";
  reader.next().catch((error: unknown) => why = String(error));
  await clock.advance(29_999);
  assert.equal(why, "");
  await clock.advance(1);
  assert.match(why, /server did not end the stream within 30000 ms/);
});

test("ResponseReader names the bookmark that initial events miss, and only it", async () => {
  for (const isInitial of [true, false]) {
    const { clock, reader } = spoken({ silence: 10_000, total: 30_000 });
    await reader.open();
    if (!isInitial) reader.expectWithin(9_000);
    let why = "";
    reader.next().catch((error: unknown) => why = String(error));
    await clock.advance(10_000);
    assert.match(why, /nothing arrived/);
    assert.equal(/not even the bookmark/.test(why), isInitial);
  }
});
