/**
 * What a reflector does while time passes: limits, pauses, its health and its end.
 *
 * @module
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  ApiError,
  type ApiRequest,
  type HttpResponse,
  noMetrics,
  type ReconnectOptions,
  silentLogger,
} from "@coracle/operator/client";
import { resolveOptions } from "../../../../core/api/options.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { RECONNECT_OPTIONS } from "../../../../core/cache/watch/reconnect.ts";
import {
  Reflector,
  type ReflectorDeps,
} from "../../../../core/cache/watch/reflector.ts";
import { ConcurrencyLimit } from "../../../../core/pace.ts";
import { InformerMetrics } from "../../../../core/cache/watch/watch_record.ts";
import { ChunkQueue } from "../../../../core/client/transport/chunk_queue.ts";
import { Widget } from "../../../support/fake_watch_call.ts";
import { inTime } from "../../../support/in_time.ts";
import { loggedSink } from "../../../support/logged_sink.ts";

const object = (name: string, version: number, annotations = {}) => ({
  metadata: { name, resourceVersion: String(version), annotations },
});
const event = (type: string, version: number) => ({
  type,
  object: object(type === "BOOKMARK" ? "" : "a", version),
});
const ended = (version: number, is = "true") => ({
  type: "BOOKMARK",
  object: object("", version, { "k8s.io/initial-events-end": is }),
});
const page = (version: number, token = "") => ({
  kind: "WidgetList",
  metadata: { resourceVersion: String(version), continue: token },
  items: [object("a", version)],
});
const EXPIRED = {
  type: "ERROR",
  object: { kind: "Status", code: 410, reason: "Expired" },
};

/** Request of a reflector, which the test answers. */
class Call {
  readonly request: ApiRequest;
  readonly body: ChunkQueue = new ChunkQueue({
    pause() {},
    resume() {},
    leave() {},
  });
  readonly response: PromiseWithResolvers<HttpResponse> = Promise
    .withResolvers();

  constructor(request: ApiRequest) {
    this.request = request;
  }

  get query(): Record<string, string> {
    const { searchParams } = new URL(this.request.path, "http://server");
    return Object.fromEntries(searchParams);
  }

  /** Verb and version of the request. */
  get text(): string {
    const { query } = this;
    const verb = query["sendInitialEvents"]
      ? "stream"
      : query["watch"]
      ? "watch"
      : "list";
    return `${verb} ${
      query["continue"] ?? query["resourceVersion"] ?? "newest"
    }`;
  }

  open(...lines: readonly object[]): void {
    const { body } = this;
    const cancel = () => Promise.resolve();
    this.response.resolve({ status: 200, headers: {}, body, cancel });
    this.send(...lines);
  }

  send(...lines: readonly object[]): void {
    for (const line of lines) {
      this.body.push(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
    }
  }

  /** Answers with lines, and ends the response. */
  answer(...lines: readonly object[]): void {
    this.open(...lines);
    this.body.end();
  }
}

/** A reflector whose requests the test answers, and the calls of its sink. */
function reflector(
  options: ReconnectOptions = {},
  parts: Partial<ReflectorDeps> = {},
) {
  const clock = new VirtualClock();
  const calls: Call[] = [];
  const log: string[] = [];
  const one = new Reflector({
    client: {
      request(request) {
        const call = new Call(request);
        calls.push(call);
        return call.response.promise;
      },
      resolve: () => Promise.reject(new Error("it is resolved")),
    },
    kind: Widget,
    namespace: undefined,
    labelSelector: undefined,
    fieldSelector: undefined,
    shardSelector: undefined,
    metadataOnly: false,
    sink: loggedSink(log),
    slice: new TimeSlice(clock),
    budget: undefined,
    relists: undefined,
    reconnect: resolveOptions(options, RECONNECT_OPTIONS),
    clock,
    random: () => 0,
    log: silentLogger,
    metrics: new InformerMetrics(noMetrics, "Widget"),
    ...parts,
  });
  const last = () => calls.at(-1) as Call;
  return {
    clock,
    calls,
    log,
    last,
    one,
    texts: () => calls.map(({ text }) => text),
    /** Starts and reads the first state as a stream. */
    async begin() {
      one.start();
      await clock.settle();
      last().open(ended(1));
      await clock.settle();
    },
    /** Passes a time, and asserts that the next request comes at its end. */
    async nextAfter(time: number) {
      const { length } = calls;
      await clock.advance(time - 1);
      assert.equal(calls.length, length, `a request before ${time} ms`);
      await clock.advance(1);
      assert.equal(calls.length, length + 1, `no request after ${time} ms`);
    },
    async stop() {
      await inTime("the stop", one.stop());
      assert.equal(clock.pendingTimers, 0);
    },
  };
}

test("Reflector gives up a first stream that is silent, and lists", async () => {
  const { clock, last, nextAfter, one, stop, texts } = reflector();
  one.start();
  one.start();
  await clock.settle();
  assert.deepEqual(texts(), ["stream newest"]);
  assert.equal(last().query["timeoutSeconds"], "300");
  last().open();
  await nextAfter(10_000);
  assert.deepEqual(texts().slice(1), ["list 0"]);
  assert.equal(one.health().errors, 1);
  await stop();
});

test("Reflector renews a quiet watch of a server that has sent no bookmark", async () => {
  const { begin, clock, last, log, nextAfter, one, stop, texts } = reflector();
  await begin();
  // A third of the timeout of 300 s: no pause, and no failure.
  await nextAfter(100_000);
  last().open();
  await clock.advance(60_000);
  last().send(event("MODIFIED", 2));
  await clock.settle();
  // Silence counts from the last event.
  await nextAfter(100_000);
  assert.deepEqual(texts().slice(1), ["watch 1", "watch 2"]);
  assert.equal(one.health().errors, 0);
  assert.equal(log.filter((entry) => entry === "init").length, 1);
  await stop();
});

test("Reflector gives up a watch that stops within a line, as a failure", async () => {
  const { begin, last, nextAfter, one, stop, texts } = reflector();
  await begin();
  last().body.push(new TextEncoder().encode('{"type":"MODI'));
  await nextAfter(100_000 + 800);
  assert.deepEqual(texts().slice(1), ["watch 1"]);
  assert.match(one.health().lastError?.message ?? "", /end within a line/);
  await stop();
});

test("Reflector gives up a watch that its server does not end in time", async () => {
  const { begin, clock, last, nextAfter, one, stop, texts } = reflector();
  await begin();
  for (let count = 2; count < 8; count++) {
    await clock.advance(50_000);
    last().send(event("MODIFIED", count));
    await clock.settle();
  }
  await nextAfter(10_000 + 800);
  assert.deepEqual(texts().slice(1), ["watch 7"]);
  assert.match(one.health().lastError?.message ?? "", /did not end the stream/);
  await stop();
});

test("Reflector expects bookmarks of a server that has sent one", async () => {
  const { begin, clock, last, log, nextAfter, one, stop, texts } = reflector();
  await begin();
  last().send(event("BOOKMARK", 2));
  await clock.settle();
  assert.ok(log.includes("bookmark 2"));
  // The watch that follows has the same limit.
  await clock.advance(10_000);
  last().body.end();
  await clock.settle();
  last().open();
  await nextAfter(180_000 + 800);
  // It may have been restarted: it sends no bookmark before its first event.
  last().open();
  await nextAfter(100_000);
  assert.equal(one.health().errors, 1);
  assert.deepEqual(texts().slice(1), ["watch 2", "watch 2", "watch 2"]);
  await stop();
});

test("Reflector expects a bookmark after the one that has just come", async () => {
  const { begin, last, nextAfter, stop } = reflector();
  await begin();
  last().send(event("BOOKMARK", 2));
  await nextAfter(180_000 + 800);
  await stop();
});

test("Reflector does not count refusals that say nothing about streams", async () => {
  const { clock, last, one, stop, texts } = reflector();
  one.start();
  for (let count = 0; count < 6; count++) {
    await clock.settle();
    last().response.reject(new ApiError("Refused", { status: 429 }));
    await clock.advance(60_000);
  }
  assert.deepEqual(new Set(texts()), new Set(["stream newest"]));
  assert.equal(texts().length, 7);
  await stop();
});

test("Reflector lists if the initial events of a stream do not end", async () => {
  const others = [event("MODIFIED", 1), event("BOOKMARK", 1), ended(1, "no")];
  for (const line of [event("ADDED", 1), ...others]) {
    const { clock, last, one, stop, texts } = reflector();
    one.start();
    await clock.settle();
    last().open(event("ADDED", 1));
    for (let sent = 0; sent < 8; sent++) {
      await clock.advance(9_000);
      if (texts().length === 1) last().send(line);
      await clock.settle();
    }
    const isObject = line.type === "ADDED";
    assert.deepEqual(
      texts(),
      isObject ? ["stream newest"] : ["stream newest", "list 0"],
      JSON.stringify(line),
    );
    assert.equal(one.health().synced, false);
    await stop();
  }
});

test("Reflector reopens a watch that lived for a while without a pause", async () => {
  const { begin, clock, last, stop, texts } = reflector();
  await begin();
  await clock.advance(5_000);
  last().body.end();
  await clock.settle();
  assert.deepEqual(texts().slice(1), ["watch 1"]);
  await stop();
});

test("Reflector resumes a watch that breaks, and waits as long as it is told", async () => {
  const { begin, clock, last, nextAfter, one, stop, texts } = reflector();
  await begin();
  last().send(event("MODIFIED", 2));
  await clock.settle();
  last().body.fail(new Error("reset"));
  await clock.settle();
  assert.equal(one.health().state, "waiting");
  await nextAfter(800);
  last().response.reject(
    new ApiError("Refused", { status: 429, retryAfter: 7_000 }),
  );
  await clock.settle();
  assert.equal(one.health().consecutiveFailures, 2);
  await nextAfter(7_000);
  last().open(event("MODIFIED", 3));
  await clock.settle();
  assert.equal(one.health().consecutiveFailures, 0);
  assert.deepEqual(texts().slice(1), ["watch 2", "watch 2"]);
  await stop();
});

test("Reflector retries once without a pause after a version is gone", async () => {
  const { begin, clock, last, nextAfter, stop, texts } = reflector();
  await begin();
  last().send(EXPIRED);
  await clock.settle();
  assert.deepEqual(texts().slice(1), ["stream newest"]);
  last().open(ended(5), EXPIRED);
  await clock.settle();
  assert.equal(texts().length, 2, "it does not go round in circles");
  await nextAfter(800);
  await stop();
});

test("Reflector shows in its health what it does", async () => {
  const { clock, last, log, one, stop } = reflector();
  const state = () => one.health().state;
  assert.equal(state(), "stopped");
  one.start();
  await clock.settle();
  assert.equal(state(), "connecting");
  last().open(event("ADDED", 1));
  await clock.settle();
  assert.equal(state(), "syncing");
  assert.equal(one.health().synced, false);
  await clock.advance(2_000);
  last().send(ended(2));
  await clock.settle();
  assert.equal(state(), "watching");
  assert.equal(one.health().synced, true);
  assert.equal(one.health().watchAge, 2_000);
  const flushes = () => log.filter((line) => line === "flush").length;
  const before = flushes();
  last().body.fail(new Error("reset"));
  await clock.settle();
  assert.ok(flushes() > before, "what was counted is shown");
  assert.equal(one.health().watchAge, undefined);
  await stop();
  assert.equal(state(), "stopped");
  assert.equal(one.health().errors, 1, "a stop is no failure");
});

test("Reflector reads a list again that is gone or leads to itself", async () => {
  const options = { watchList: false, pageSize: 7 };
  const { calls, clock, last, nextAfter, one, stop, texts } = reflector(
    options,
  );
  one.start();
  await clock.settle();
  last().response.reject(new ApiError("Gone", { status: 410 }));
  await clock.settle();
  last().answer(page(3, "next"));
  await clock.settle();
  last().answer(page(3, "next"));
  await nextAfter(800);
  last().answer(page(3, "next"));
  await clock.settle();
  last().response.reject(new ApiError("Gone", { status: 410 }));
  await clock.settle();
  assert.deepEqual(texts(), [
    "list 0",
    "list newest",
    "list next",
    "list newest",
    "list next",
    "list newest",
  ]);
  assert.deepEqual(
    calls.map(({ query }) => query["limit"]),
    ["7", "7", "7", "7", "7", undefined],
    "a list of one page cannot expire",
  );
  assert.equal(one.health().errors, 3);
  last().answer(page(4));
  await clock.settle();
  assert.equal(one.health().consecutiveFailures, 0);
  await stop();
});

test("Reflector waits for its turn to relist, but not with a first state", async () => {
  const relists = new ConcurrencyLimit(1);
  await relists.enter();
  const { begin, clock, last, one, stop, texts } = reflector({}, { relists });
  await begin();
  last().send(EXPIRED);
  await clock.settle();
  assert.deepEqual(texts(), ["stream newest"]);
  assert.equal(relists.waiting, 1);
  relists.leave();
  await clock.settle();
  assert.deepEqual(texts(), ["stream newest", "stream newest"]);
  assert.equal(one.health().relists, 1);
  last().open(ended(3));
  await clock.settle();
  // The state is read: the stream goes on without a place in the queue.
  assert.equal(relists.enter(), undefined);
  await stop();
});

test("Reflector waits for its turn to read its first state, by bytes", async () => {
  const starts = new ConcurrencyLimit(1 << 20);
  await starts.enter(undefined, 3 << 18);
  const first = reflector({}, { starts });
  const second = reflector({}, { starts });
  for (const { clock, one } of [first, second]) {
    one.start();
    await clock.settle();
  }
  // There is room for one beside what is in flight.
  assert.deepEqual(first.texts(), ["stream newest"]);
  assert.deepEqual(second.texts(), []);
  first.last().open(ended(1));
  await first.clock.settle();
  await second.clock.settle();
  assert.deepEqual(second.texts(), ["stream newest"]);
  await Promise.all([first.stop(), second.stop()]);
  starts.leave(3 << 18);
  assert.equal(starts.enter(undefined, 1 << 20), undefined);
});

test("Reflector takes no event before its sink has the whole state", async () => {
  const done = Promise.withResolvers<void>();
  const log: string[] = [];
  const note = (text: string) => () => void log.push(text);
  const { clock, last, one, stop } = reflector({}, {
    sink: {
      init: note("init"),
      initApply: note("initApply"),
      initRestored: note("initRestored"),
      initDone: () => done.promise,
      restored: note("restored"),
      caughtUp: note("caughtUp"),
      apply: note("apply"),
      delete: note("delete"),
      bookmark: note("bookmark"),
      flush() {},
    },
  });
  one.start();
  await clock.settle();
  last().open(ended(1), event("MODIFIED", 2));
  await clock.settle();
  assert.deepEqual(log, ["init"]);
  let isStopped = false;
  const stopped = stop().then(() => isStopped = true);
  await clock.settle();
  assert.equal(isStopped, false, "the sink is still at work");
  done.resolve();
  await stopped;
  assert.deepEqual(log, ["init"]);
});

test("Reflector stops while its kind is being resolved", async () => {
  const { plural: _plural, scope: _scope, ...kind } = Widget;
  const resolve = () => new Promise<never>(() => {});
  const request = () => Promise.reject(new Error("nothing to ask"));
  const client = { request, resolve };
  const { clock, one, stop } = reflector({}, { kind, client });
  one.start();
  await clock.settle();
  await stop();
  assert.equal(one.health().errors, 0);
});
