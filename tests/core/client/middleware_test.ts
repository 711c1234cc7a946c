import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type ApiRequest,
  noMetrics,
  type RetryOptions,
  silentLogger,
} from "@coracle/operator/client";
import { textOf } from "../../../core/client/transport/chunk_queue.ts";
import { inTime } from "../../support/in_time.ts";
import { resolveOptions } from "../../../core/api/options.ts";
import {
  countRequests,
  logWarnings,
  parseWarnings,
  rateLimit,
  retry,
  RETRY_OPTIONS,
  traceRequests,
} from "../../../core/client/middleware.ts";
import { authenticate } from "../../../core/client/authenticate.ts";
import { pathRequest } from "../../../core/client/request.ts";
import { LeakGuard } from "../../support/leaks.ts";
import { RecordedTracer } from "../../support/recorded_tracer.ts";
import {
  type Script,
  ScriptedTransport,
  through,
} from "../../support/scripted_transport.ts";

const RETRIES = resolveOptions<RetryOptions>({}, RETRY_OPTIONS);
const READ = pathRequest("/x");
const WRITE: ApiRequest = { ...READ, method: "POST", verb: "create" };
const WATCH: ApiRequest = { ...READ, verb: "watch" };

const BUSY = { status: 429, headers: { "retry-after": "1" } };

test("retry waits for the Retry-After of the server, with jitter", async () => {
  for (const random of [0, 0.5]) {
    const clock = new VirtualClock();
    const { send, transport } = through(
      retry({ ...RETRIES, clock, random: () => random }),
      (_request, count) => count < 3 ? BUSY : {},
    );
    const sent = send(WRITE);
    const pause = 1_000 * (1 + random / 5);
    for (const count of [1, 2]) {
      await clock.advance(pause - 1);
      assert.equal(transport.requests.length, count);
      await clock.advance(1);
    }
    assert.equal((await sent).status, 200);
    assert.equal(transport.requests.length, 3);
    assert.equal(transport.cancelled, 2);
    assert.equal(clock.pendingTimers, 0);
  }
});

test("retry pauses as after a failure if the server asks for no pause", async () => {
  const clock = new VirtualClock();
  const { send, transport } = through(
    retry({ ...RETRIES, clock, random: () => 0 }),
    (_request, count) => count < 3 ? throttled(429, "0") : {},
  );
  const sent = send(WRITE);
  await clock.advance(100 + 199);
  assert.equal(transport.requests.length, 2);
  await clock.advance(1);
  assert.equal((await sent).status, 200);
});

test("retry repeats reads after a failed connection, with backoff", async () => {
  const clock = new VirtualClock();
  const { send, transport } = through(
    retry({ ...RETRIES, clock, random: () => 0 }),
    (_request, count) => {
      if (count < 4) throw new Error("broken");
      return {};
    },
  );
  const sent = send(READ);
  await clock.advance(100 + 200 + 399);
  assert.equal(transport.requests.length, 3);
  await clock.advance(1);
  assert.equal((await sent).status, 200);
});

const REVIEW: ApiRequest = {
  ...WRITE,
  path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
};
const throttled = (status: number, seconds?: string) => ({
  status,
  headers: seconds === undefined ? {} : { "retry-after": seconds },
});

/** Request, its first outcome, and whether it is sent again. */
const RETRIED: readonly (readonly [
  string,
  ApiRequest,
  "broken" | ReturnType<typeof throttled>,
  boolean,
])[] = [
  ["a write, 429", WRITE, throttled(429, "1"), true],
  ["a write, 503", WRITE, throttled(503, "1"), true],
  ["a watch, 429", WATCH, throttled(429, "1"), true],
  ["the longest wait", WRITE, throttled(503, "30"), true],
  ["a longer wait", WRITE, throttled(503, "31"), false],
  ["no wait, 429", WRITE, throttled(429), false],
  ["no wait, 503", WRITE, throttled(503), false],
  ["500", WRITE, throttled(500, "1"), false],
  ["409", WRITE, throttled(409, "1"), false],
  ["opted out, 429", { ...READ, mayRetry: false }, BUSY, false],
  ["a broken read", READ, "broken", true],
  ["a broken review", REVIEW, "broken", true],
  ["a broken write", WRITE, "broken", false],
  ["a broken watch", WATCH, "broken", false],
  ["opted out, broken", { ...READ, mayRetry: false }, "broken", false],
];

for (const [what, request, outcome, isRetried] of RETRIED) {
  test(`retry sends a request ${isRetried ? "again" : "once"}: ${what}`, async () => {
    const clock = new VirtualClock();
    const guard = new LeakGuard();
    const { signal } = new AbortController();
    const closed = new AbortController().signal;
    const { send, transport } = through(
      retry({ ...RETRIES, clock, closed, random: () => 0 }),
      (_request, count) => {
        if (count > 1) return {};
        if (outcome === "broken") throw new Error("broken");
        return outcome;
      },
    );
    const ended = Promise.allSettled([send({ ...request, signal })]);
    await clock.advance(30_000);
    await ended;
    assert.equal(transport.requests.length, isRetried ? 2 : 1);
    guard.check(clock);
  });
}

test("retry repeats a read whose check before the send has passed, and no other", async () => {
  for (const refuses of [false, true]) {
    const clock = new VirtualClock();
    const transport = new ScriptedTransport(() => ({}));
    let sends = 0;
    const send = retry({ ...RETRIES, clock, random: () => 0 })((request) => {
      request.beforeSend?.();
      if (sends++ === 0) throw new Error("broken");
      return transport.send(request);
    });
    const beforeSend = () => {
      if (refuses) throw new Error("refused");
    };
    const sent = send({ ...READ, beforeSend }).then(
      ({ status }) => status,
      (error: unknown) => String(error),
    );
    await clock.advance(1_000);
    assert.equal(await sent, refuses ? "Error: refused" : 200);
    assert.equal(sends, refuses ? 0 : 2);
  }
});

test("retry does not repeat a read that was aborted, or after the close", async () => {
  for (const ended of ["signal", "closed"]) {
    const clock = new VirtualClock();
    const abort = new AbortController();
    const { send, transport } = through(
      retry({ ...RETRIES, clock, random: () => 0, [ended]: abort.signal }),
      () => {
        abort.abort(new Error("enough"));
        throw new Error("broken");
      },
    );
    const signal = ended === "signal" ? abort.signal : undefined;
    const sent = send({ ...READ, signal });
    await inTime("it ends", assert.rejects(sent, /broken/));
    assert.equal(transport.requests.length, 1);
  }
});

test("retry waits twice as long each time, up to the longest delay", async () => {
  const clock = new VirtualClock();
  const times: number[] = [];
  const { send } = through(
    retry({ maxAttempts: 5, initial: 100, max: 300, clock, random: () => 0 }),
    () => {
      times.push(clock.now());
      throw new Error("broken");
    },
  );
  const ended = Promise.allSettled([send(READ)]);
  await clock.advance(60_000);
  await ended;
  const waits = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  assert.deepEqual(waits, [100, 200, 300, 300]);
});

test("retry logs the first failure for debugging, and others as warnings", async () => {
  const busy: Script = () => BUSY;
  const broken: Script = () => {
    throw new Error("broken");
  };
  const cases: readonly (readonly [Script, string])[] = [
    [busy, "The server throttles a request, which is retried"],
    [broken, "A request failed and is retried"],
  ];
  for (const [script, message] of cases) {
    for (const maxAttempts of [1, 2, 3, 4]) {
      const clock = new VirtualClock();
      const told: string[] = [];
      const logger = {
        ...silentLogger,
        debug: (message: string) => told.push(`debug: ${message}`),
        warn: (message: string) => told.push(`warn: ${message}`),
      };
      const { send, transport } = through(
        retry({ ...RETRIES, clock, logger, random: () => 0, maxAttempts }),
        script,
      );
      const ended = Promise.allSettled([send(READ)]);
      await clock.advance(60_000);
      await ended;
      assert.equal(transport.requests.length, maxAttempts);
      const levels = ["debug", "warn", "warn"].slice(0, maxAttempts - 1);
      assert.deepEqual(told, levels.map((level) => `${level}: ${message}`));
    }
  }
});

test("retry ends after the last attempt, and immediately on abort", async () => {
  const clock = new VirtualClock();
  const refused = through(
    retry({ ...RETRIES, clock, random: () => 0, maxAttempts: 3 }),
    () => BUSY,
  );
  const sent = refused.send(READ);
  await clock.advance(10_000);
  assert.equal((await sent).status, 429);
  assert.equal(refused.transport.requests.length, 3);
  const controller = new AbortController();
  const waiting = refused.send({ ...READ, signal: controller.signal });
  await clock.settle();
  controller.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  assert.equal(clock.pendingTimers, 0);
});

test("rateLimit allows a burst and then keeps the rate, in order", async () => {
  const clock = new VirtualClock();
  const { send, transport } = through(
    rateLimit({ perSecond: 10, burst: 3, clock }),
    () => ({}),
  );
  const all = Array.from(
    { length: 6 },
    (_, index) => send(pathRequest(`/${index}`)),
  );
  await clock.settle();
  assert.equal(transport.requests.length, 3);
  await clock.advance(100);
  assert.equal(transport.requests.length, 4);
  await clock.advance(200);
  await Promise.all(all);
  assert.deepEqual(
    transport.requests.map(({ path }) => path),
    ["/0", "/1", "/2", "/3", "/4", "/5"],
  );
  await clock.advance(10_000);
  await Promise.all([send(READ), send(READ), send(READ)]);
  const lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/lock";
  await inTime("a Lease does not wait", send(pathRequest(lease)));
  for (const options of [{ perSecond: 0 }, { perSecond: 1, burst: 0 }]) {
    assert.throws(() => rateLimit({ ...options, clock }), RangeError);
  }
});

test("rateLimit allows a burst of twice the rate, and of one at least", async () => {
  for (const [perSecond, burst] of [[10, 20], [0.1, 1]] as const) {
    const clock = new VirtualClock();
    const guard = new LeakGuard();
    const closed = new AbortController();
    const { send, transport } = through(
      rateLimit({ perSecond, clock, closed: closed.signal }),
      () => ({}),
    );
    const sent = Array.from({ length: burst + 1 }, () => send(READ));
    await clock.settle();
    assert.equal(transport.requests.length, burst);
    await clock.advance(1_000 / perSecond);
    assert.equal(transport.requests.length, burst + 1);
    await Promise.all(sent);
    guard.check(clock);
    const late = send(READ);
    closed.abort(new Error("the client was closed"));
    await inTime("it ends", assert.rejects(late, /was closed/));
  }
});

test("rateLimit returns the tokens of aborted requests", async () => {
  const clock = new VirtualClock();
  const { send, transport } = through(
    rateLimit({ perSecond: 1, burst: 1, clock }),
    () => ({}),
  );
  const controller = new AbortController();
  await send(READ);
  const waiting = Array.from(
    { length: 100 },
    () => send({ ...READ, signal: controller.signal }),
  );
  controller.abort(new Error("enough"));
  await Promise.allSettled(waiting);
  const next = send(READ);
  await clock.advance(1_000);
  await inTime("the next request is sent", next);
  assert.equal(transport.requests.length, 2);
});

test("logWarnings logs each warning of the server once", async () => {
  const written: unknown[] = [];
  const logger = {
    ...silentLogger,
    warn: (_message: string, fields?: object) => written.push(fields),
  };
  const { send } = through(logWarnings(logger), () => ({
    headers: { warning: '299 - "old \\"v1\\"", 299 k8s "unknown field"' },
  }));
  await send(READ);
  await send(READ);
  assert.deepEqual(written, [
    { warning: 'old "v1"', action: "read /x" },
    { warning: "unknown field", action: "read /x" },
  ]);
  assert.deepEqual(parseWarnings("rubbish"), []);
});

test("logWarnings reads the UTF-8 of a server, and leaves other texts", async () => {
  const inBytes = (text: string) => Buffer.from(text).toString("latin1");
  const sent = [inBytes("schlüssel 日本"), "日本 é", "é"];
  const written: unknown[] = [];
  const logger = {
    ...silentLogger,
    warn: (_message: string, fields?: { readonly warning?: unknown }) =>
      written.push(fields?.warning),
  };
  const { send } = through(logWarnings(logger), () => ({
    headers: { warning: `299 - "${sent.shift()}"` },
  }));
  for (let i = 0; i < 3; i++) await send(READ);
  assert.deepEqual(written, ["schlüssel 日本", "日本 é", "é"]);
});

test("logWarnings logs a thousand distinct warnings, and no more", async () => {
  let written = 0;
  const logger = { ...silentLogger, warn: () => void written++ };
  const { send } = through(logWarnings(logger), (_, count) => ({
    headers: { warning: `299 - "warning ${count}"` },
  }));
  for (let i = 0; i < 1_001; i++) await send(READ);
  assert.equal(written, 1_000);
});

test("countRequests counts by verb and code, including failures", async () => {
  const clock = new VirtualClock();
  const counts: unknown[] = [];
  const durations: number[] = [];
  const metrics = {
    ...noMetrics,
    counter: () => ({
      add: (value: number, labels?: object) => counts.push([value, labels]),
      remove() {},
    }),
    histogram: () => ({
      observe: (value: number) => durations.push(value),
      remove() {},
    }),
  };
  const { send } = through(countRequests(metrics, clock), async (_, count) => {
    if (count === 2) throw new Error("broken");
    await clock.advance(250);
    return { status: count === 1 ? 404 : 200 };
  });
  await send(READ);
  await assert.rejects(() => send(WATCH));
  await send(READ);
  await send(WATCH);
  assert.deepEqual(counts, [
    [1, { verb: "get", code: "404" }],
    [1, { verb: "watch", code: "error" }],
    [1, { verb: "get", code: "200" }],
    [1, { verb: "watch", code: "200" }],
  ]);
  assert.equal(durations[0], 0.25);
});

test("retry and rateLimit leave nothing of a request that is aborted while it waits", async () => {
  const clock = new VirtualClock();
  const guard = new LeakGuard();
  const { signal: closed } = new AbortController();
  const waiting = [
    retry({ ...RETRIES, clock, closed, random: () => 0 }),
    rateLimit({ perSecond: 1, burst: 1, clock, closed }),
  ];
  for (const middleware of waiting) {
    const { send } = through(middleware, () => BUSY);
    if (middleware === waiting[1]) await send(READ);
    const abort = new AbortController();
    const sent = send({ ...READ, signal: abort.signal });
    const aborted = assert.rejects(sent, /enough/);
    await clock.settle();
    assert.equal(clock.pendingTimers, 1, "it waits");
    abort.abort(new Error("enough"));
    await aborted;
  }
  guard.check(clock);
});

test("traceRequests marks each answer from 400 as an error, and no other", async () => {
  const tracer = new RecordedTracer();
  const statuses = [200, 304, 399, 400, 404, 503];
  const { send, transport } = through(
    traceRequests(tracer),
    (_request, count) => ({ status: statuses[count - 1]! }),
  );
  for (const _ of statuses) await send({ ...READ, path: "/x?watch=1" });
  assert.deepEqual(
    tracer.spans.map(({ attributes, status }) => [
      attributes["url.path"],
      attributes["http.response.status_code"],
      status?.code,
    ]),
    statuses.map((status) => ["/x", status, status < 400 ? undefined : 2]),
  );
  const parents = transport.requests.map(({ headers }) => headers.traceparent);
  assert.equal(new Set(parents).size, statuses.length, "each has its span");
});

test("A refusal is read as one text although its chunks cut a character", async () => {
  const bytes = new TextEncoder().encode("é€𝄞 s3cret");
  async function* body() {
    for (const byte of bytes) yield Uint8Array.of(byte);
  }
  const credential = { token: "s3cret" };
  const send = authenticate({
    current: () => Promise.resolve(credential),
    refresh: () => Promise.resolve(credential),
  })(() =>
    Promise.resolve({
      status: 403,
      headers: {},
      body: body(),
      cancel: () => Promise.resolve(),
    })
  );
  const response = await send(pathRequest("/x"));
  assert.equal(await textOf(response.body), "é€𝄞 …");
});
