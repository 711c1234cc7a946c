import assert from "node:assert/strict";
import { test } from "node:test";
import {
  endAtOnce,
  fallSilent,
  neverAnswer,
  refuse,
  resetAtOnce,
  sendThen,
} from "../../../support/watch_faults.ts";
import type { Fault } from "../../../support/fake_watch_call.ts";
import {
  type InformerCase,
  withInformer,
} from "../../../support/informer_case.ts";

const NAMES = ["a", "b", "c", "d", "e", "f", "g"];

function fill({ server }: InformerCase): void {
  for (const name of NAMES) server.put(`default/${name}`);
}

/** The calls as verb and what they ask for. */
function asked({ server }: InformerCase): string[] {
  return server.calls.map(({ verb, query }) => {
    const version = query.get("resourceVersion") ?? "";
    if (verb === "watch") {
      return query.has("sendInitialEvents")
        ? `stream ${version}`
        : `watch ${version}`;
    }
    return `list ${version}${query.has("continue") ? "+" : ""} ${
      query.get("limit") ?? "all"
    }`;
  });
}

test("Informer reads its state as a stream and watches on it", () =>
  withInformer(async (parts) => {
    fill(parts);
    await parts.sync();
    assert.deepEqual(asked(parts), ["stream "]);
    const [call] = parts.server.calls;
    assert.equal(call?.query.get("resourceVersionMatch"), "NotOlderThan");
    assert.equal(call?.query.get("allowWatchBookmarks"), "true");
    const timeout = Number(call?.query.get("timeoutSeconds"));
    assert.ok(timeout >= 300 && timeout <= 600, `timeout ${timeout}`);
    assert.deepEqual(
      parts.events,
      NAMES.map((name) => `added default/${name} initial`),
    );
    parts.server.put("default/a");
    await parts.settled();
    assert.equal(parts.events.at(-1), "updated default/a");
    assert.equal(parts.server.calls.length, 1);
  }));

test("Informer lists in pages where the server rejects streams", () =>
  withInformer(async (parts) => {
    parts.server.watchList = "refused";
    parts.server.maxPage = 3;
    fill(parts);
    await parts.sync();
    assert.deepEqual(asked(parts), [
      "stream ",
      "list 0 500",
      "list + 500",
      "list + 500",
      "watch 107",
    ]);
    // It remembers: a relist does not ask again.
    parts.server.endWatches();
    parts.server.put("default/h");
    parts.server.compact();
    await parts.until(
      "it lists again",
      () => parts.events.length === NAMES.length + 1,
    );
    assert.equal(parts.events.at(-1), "added default/h relist");
    assert.deepEqual(asked(parts).filter((call) => call.startsWith("stream")), [
      "stream ",
    ]);
  }));

test("Informer lists in pages where the initial events do not end", () =>
  withInformer(async (parts) => {
    parts.server.watchList = "ignored";
    fill(parts);
    const { clock, informer, server } = parts;
    informer.start();
    await parts.until(
      "the objects arrived",
      () => informer.size === NAMES.length,
    );
    assert.equal(informer.hasSynced, false);
    await clock.advance(10_001);
    await parts.settled();
    assert.deepEqual(asked(parts), ["stream ", "list 0 500", "watch 107"]);
    assert.equal(parts.events.length, NAMES.length);
    assert.equal(server.watches, 1);
  }));

test("Informer does not wait indefinitely for the end of a busy stream", () =>
  withInformer(async (parts) => {
    parts.server.watchList = "ignored";
    fill(parts);
    const { clock, informer, server, events } = parts;
    informer.start();
    await parts.until(
      "the objects arrived",
      () => informer.size === NAMES.length,
    );
    for (let round = 0; round < 8 && server.calls.length === 1; round++) {
      const seen = events.length;
      await clock.advance(9_000);
      server.put("default/a");
      await parts.until(
        "the change arrived",
        () => events.length > seen || server.calls.length > 1,
      );
    }
    await parts.settled();
    assert.deepEqual(asked(parts).slice(0, 2), ["stream ", "list 0 500"]);
  }));

test("Informer lists in one page after a continue token has expired", () =>
  withInformer(async (parts) => {
    parts.server.maxPage = 3;
    fill(parts);
    const { server } = parts;
    server.script("list", (call) => {
      call.serve();
      server.put("default/a");
      server.compact();
      server.maxPage = Infinity;
    });
    await parts.sync();
    assert.deepEqual(asked(parts), [
      "list 0 500",
      "list + 500",
      "list 0 all",
      "watch 108",
    ]);
  }, { reconnect: { watchList: false } }));

/** The faults that a first state may meet, each once in both ways of reading it. */
const FAULTS: readonly (readonly [string, Fault])[] = [
  ["a TCP reset before an answer", resetAtOnce],
  [
    "a TCP reset within an object",
    sendThen(
      '{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"na',
      "reset",
    ),
  ],
  [
    "an answer that ends too soon",
    sendThen('{"metadata":{"resourceVersion":"1"},"items":[', "end"),
  ],
  ["an empty answer", endAtOnce],
  ["garbage", sendThen("<html>no</html>\n", "end")],
  ["500", refuse(500, "InternalError")],
  [
    "429 with Retry-After",
    refuse(429, "TooManyRequests", { "retry-after": "3" }),
  ],
  ["403", refuse(403, "Forbidden")],
  ["404", refuse(404, "NotFound")],
  ["410", refuse(410, "Expired")],
];

for (const [name, fault] of FAULTS) {
  for (const watchList of [true, false]) {
    const how = watchList ? "stream" : "list";
    test(`Informer syncs although its first ${how} meets ${name}`, () =>
      withInformer(async (parts) => {
        fill(parts);
        parts.server.script(watchList ? "watch" : "list", fault);
        await parts.sync();
        assert.equal(parts.informer.health().watches[0]?.relists, 0);
        assert.deepEqual(
          parts.events.toSorted(),
          NAMES.map((name) => `added default/${name} initial`),
        );
      }, { reconnect: { watchList } }));
  }
}

test("Informer tells what changed until its first state was read again", () =>
  withInformer(async (parts) => {
    const { server, events } = parts;
    const object = server.put("default/a");
    const line = `${JSON.stringify({ type: "ADDED", object })}\n`;
    server.script("watch", sendThen(line, "end"));
    // Two changes while nobody watches are one.
    server.put("default/a");
    server.put("default/a");
    await parts.sync();
    assert.deepEqual(events, [
      "added default/a initial",
      "updated default/a initial",
    ]);
  }));

for (const fault of [fallSilent, neverAnswer]) {
  for (const watchList of [true, false]) {
    const how = watchList ? "stream" : "list";
    const name = fault === fallSilent ? "falls silent" : "is never answered";
    test(`Informer syncs although its first ${how} ${name}`, () =>
      withInformer(async (parts) => {
        fill(parts);
        const { server, clock, informer } = parts;
        server.script(watchList ? "watch" : "list", fault);
        informer.start();
        await parts.until("the call arrived", () => server.calls.length === 1);
        const state = fault === fallSilent ? "syncing" : "connecting";
        await parts.until(
          `it is ${state}`,
          () => informer.health().watches[0]?.state === state,
        );
        await clock.advance(80_000);
        await parts.settled();
        assert.equal(parts.events.length, NAMES.length);
      }, { reconnect: { watchList } }));
  }
}

test("Informer backs off from a server that ends every watch immediately", () =>
  withInformer(async (parts) => {
    fill(parts);
    await parts.sync();
    const { server, clock } = parts;
    server.script("watch", ...Array.from({ length: 1_000 }, () => endAtOnce));
    const calls = server.calls.length;
    server.endWatches();
    const start = clock.now();
    await parts.until("time passes", () => clock.now() - start > 600_000);
    assert.ok(
      server.calls.length - calls < 40,
      `${server.calls.length - calls} watches`,
    );
    assert.ok(
      server.calls.length - calls > 10,
      `${server.calls.length - calls} watches`,
    );
  }));

test("Informer reports a forbidden watch in its health, and recovers", () =>
  withInformer(async (parts) => {
    const { server, informer } = parts;
    fill(parts);
    const forbid = refuse(403, "Forbidden");
    server.script("watch", forbid, forbid, forbid, forbid);
    server.script("list", forbid, forbid, forbid);
    informer.start();
    await parts.until("it gave up hope", () => !informer.health().healthy);
    const { lastError, state } = informer.health().watches[0] ?? {};
    assert.match(
      lastError?.message ?? "",
      /^Cannot watch example.dev.v1 Widget: the right is missing, .*403 Forbidden$/,
    );
    assert.ok(state === "waiting" || state === "connecting", state);
    await parts.settled();
    assert.equal(informer.health().healthy, true);
  }));
