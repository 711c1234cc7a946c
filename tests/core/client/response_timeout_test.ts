import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { ApiRequest } from "@coracle/operator/client";
import {
  textOf,
  WholeBody,
} from "../../../core/client/transport/chunk_queue.ts";
import { inTime } from "../../support/in_time.ts";
import { responseTimeout } from "../../../core/client/middleware.ts";
import { pathRequest } from "../../../core/client/request.ts";
import { LeakGuard } from "../../support/leaks.ts";
import { sleep } from "../../../core/clock.ts";
import { through } from "../../support/scripted_transport.ts";

const READ = pathRequest("/x");

test("responseTimeout ends a response that stalls, unless it may pause", async () => {
  const clock = new VirtualClock();
  const silent = { [Symbol.asyncIterator]: () => ({ next: never }) };
  const never = () => new Promise<never>(() => {});
  const cases: readonly (readonly [number, Partial<ApiRequest>, string])[] = [
    [200, {}, "continue"],
    [200, { verb: "watch", mayPause: true }, ""],
    [200, { verb: "connect" }, ""],
    [410, { verb: "watch", mayPause: true }, "end"],
  ];
  for (const [status, changes, ends] of cases) {
    const send = responseTimeout(1_000, clock)(() =>
      Promise.resolve({ status, headers: {}, body: silent, cancel: never })
    );
    const response = await send({ ...READ, ...changes });
    const told: unknown[] = [];
    const chunk = response.body[Symbol.asyncIterator]().next();
    chunk.catch((error) => told.push(error.message));
    await clock.advance(1_000);
    assert.deepEqual(
      told,
      ends
        ? [
          `Cannot read /x: the server did not ${ends} its response within 1000 ms`,
        ]
        : [],
    );
    assert.equal(clock.pendingTimers, 0);
    if (!ends) continue;
    const cancelled = response.cancel();
    await clock.advance(1_000);
    await cancelled;
  }
});

/** Body that never ends: a byte after each pause. */
async function* dripping(pause: number, clock: VirtualClock) {
  for (;;) {
    await sleep(pause, { clock });
    yield Uint8Array.of(32);
  }
}

test("responseTimeout ends the body of a refusal that drips, but no other", async () => {
  for (
    const [limit, status, ended] of [
      [1_000, 403, 1_000],
      [60_000, 403, 10_000],
      [60_000, 200, Infinity],
    ] as const
  ) {
    const clock = new VirtualClock();
    const send = responseTimeout(limit, clock)(() =>
      Promise.resolve({
        status,
        headers: {},
        body: dripping(limit / 4, clock),
        cancel: () => Promise.resolve(),
      })
    );
    const response = await send({ ...READ, verb: "list" });
    const begun = clock.now();
    let end = Infinity;
    let error: Error | undefined;
    const reading = (async () => {
      for await (const _chunk of response.body);
    })();
    reading.catch((reason) => {
      end = clock.now() - begun;
      error = reason;
    });
    await clock.advance(120_000);
    assert.equal(end, ended);
    if (ended === Infinity) continue;
    assert.equal(
      error?.message,
      `Cannot read /x: the server did not end its response within ${ended} ms`,
    );
  }
});

test("responseTimeout ends a late request, and does not limit the reader", async () => {
  const clock = new VirtualClock();
  const limit = responseTimeout(1_000, clock);
  const silent = limit((request) =>
    new Promise((_resolve, reject) => {
      request.signal?.addEventListener(
        "abort",
        () => reject(request.signal?.reason),
      );
    })
  );
  const late = silent(READ);
  late.catch(() => {});
  await clock.advance(1_000);
  await assert.rejects(
    late,
    /^Error: Cannot read \/x: the server did not begin its response within 1000 ms$/,
  );
  const controller = new AbortController();
  const aborted = silent({ ...READ, signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  const { send, transport } = through(limit, () => ({}));
  await send(READ);
  await clock.advance(10_000);
  assert.equal(transport.requests[0]?.signal?.aborted, false);
  assert.equal(clock.pendingTimers, 0);
});

test("responseTimeout handles the failure of an aborted request", async () => {
  const clock = new VirtualClock();
  const reason = new Error("Cannot go on: the operator stops");
  const send = responseTimeout(1_000, clock)((request) =>
    Promise.reject(request.signal?.reason)
  );
  // An unhandled rejection would fail the test.
  await assert.rejects(
    () => send({ ...READ, signal: AbortSignal.abort(reason) }),
    reason,
  );
});

test("responseTimeout leaves no listener and no timer of a request that has ended", async () => {
  const clock = new VirtualClock();
  const guard = new LeakGuard();
  const { signal } = new AbortController();
  const limit = responseTimeout(1_000, clock);
  const refusing = limit(() => Promise.reject(new Error("refused")));
  await assert.rejects(refusing({ ...READ, signal }), /refused/);
  const whole = limit(() =>
    Promise.resolve({
      status: 200,
      headers: {},
      body: new WholeBody(new Uint8Array(1)),
      cancel: () => Promise.resolve(),
    })
  );
  await whole({ ...READ, signal });
  const { send } = through(limit, (_, count) => ({
    status: count % 2 === 0 ? 200 : 500,
    body: "some text",
  }));
  for (const mayPause of [false, true, false, true]) {
    const request = { ...READ, mayPause, signal };
    for await (const _chunk of (await send(request)).body);
    for await (const _chunk of (await send(request)).body) break;
    await (await send(request)).cancel();
  }
  const { send: sendBroken } = through(limit, () => ({
    body: (async function* () {
      yield "part";
      throw new Error("broken");
    })(),
  }));
  for (const mayPause of [false, true]) {
    const { body } = await sendBroken({ ...READ, mayPause, signal });
    await assert.rejects(textOf(body), /broken/);
  }
  guard.check(clock);
});

test("responseTimeout ends a body between two chunks when its signal aborts", async () => {
  for (const mayPause of [false, true]) {
    const abort = new AbortController();
    let inner: AbortSignal | undefined;
    const send = responseTimeout(1_000, new VirtualClock())((request) => {
      inner = request.signal;
      return Promise.resolve({
        status: 200,
        headers: {},
        body: (async function* () {
          for (;;) yield new Uint8Array(1);
        })(),
        cancel: () => Promise.resolve(),
      });
    });
    const request = { ...READ, mayPause, signal: abort.signal };
    const body = (await send(request)).body[Symbol.asyncIterator]();
    for (let i = 0; i < 2; i++) await body.next();
    abort.abort(new Error("enough"));
    assert.equal(inner?.reason?.message, "enough");
  }
});

test("responseTimeout ends a request although the transport ignores its signal", async () => {
  const clock = new VirtualClock();
  const never = new Promise<never>(() => {});
  const signals: (AbortSignal | undefined)[] = [];
  const deaf = responseTimeout(1_000, clock)((request) => {
    signals.push(request.signal);
    return never;
  });
  const abort = new AbortController();
  const late = deaf(READ);
  const aborted = deaf({ ...READ, signal: abort.signal });
  const before = deaf({
    ...READ,
    signal: AbortSignal.abort(new Error("early")),
  });
  abort.abort(new Error("enough"));
  const ended = Promise.all([
    assert.rejects(late, /did not begin its response within 1000 ms/),
    assert.rejects(aborted, /enough/),
    assert.rejects(before, /early/),
  ]);
  await clock.advance(1_000);
  await inTime("all end", ended);
  assert.ok(signals.every((signal) => signal?.aborted));
  assert.equal(clock.pendingTimers, 0);
});

test("responseTimeout cancels a response that begins after the end of its request", async () => {
  const clock = new VirtualClock();
  const cancelled: string[] = [];
  const answers: (() => void)[] = [];
  const send = responseTimeout(1_000, clock)(({ path }) =>
    new Promise((resolve) =>
      answers.push(() =>
        resolve({
          status: 200,
          headers: {},
          body: (async function* () {})(),
          cancel: () => Promise.resolve(void cancelled.push(path)),
        })
      )
    )
  );
  const abort = new AbortController();
  const ended = Promise.all([
    assert.rejects(send(pathRequest("/late")), /did not begin/),
    assert.rejects(
      send({ ...pathRequest("/aborted"), signal: abort.signal }),
      /enough/,
    ),
  ]);
  answers[1]?.();
  abort.abort(new Error("enough"));
  await clock.advance(1_000);
  await inTime("both end", ended);
  answers[0]?.();
  await clock.settle();
  assert.deepEqual(cancelled, ["/aborted", "/late"]);
});
