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
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { resolveOptions } from "../../../../core/api/options.ts";
import { RECONNECT_OPTIONS } from "../../../../core/cache/watch/reconnect.ts";
import {
  Reflector,
  type ReflectorSink,
} from "../../../../core/cache/watch/reflector.ts";
import { ConcurrencyLimit } from "../../../../core/pace.ts";
import { InformerMetrics } from "../../../../core/cache/watch/watch_record.ts";
import { Widget } from "../../../support/fake_watch_call.ts";
import { loggedSink } from "../../../support/logged_sink.ts";

/** Answer to one request: lines of a watch, a page, or an error. */
type Answer = readonly object[] | object | ApiError;

const object = (name: string, version: number) => ({
  metadata: { name, resourceVersion: String(version) },
});
const event = (type: string, name: string, version: number) => ({
  type,
  object: object(name, version),
});
const synced = (version: number) => ({
  type: "BOOKMARK",
  object: {
    metadata: {
      resourceVersion: String(version),
      annotations: { "k8s.io/initial-events-end": "true" },
    },
  },
});
const page = (version: number, names: readonly string[], token = "") => ({
  kind: "WidgetList",
  metadata: { resourceVersion: String(version), continue: token },
  items: names.map((name) => object(name, version)),
});
const refused = (status: number) => new ApiError("Refused", { status });
const expired = {
  type: "ERROR",
  object: { kind: "Status", code: 410, reason: "Expired" },
};

/**
 * Runs a reflector against answers in their order; a request beyond them gets none,
 * so that a reflector that asks too often does not run on.
 *
 * @returns Requests and calls of the sink, in their order.
 */
async function reflect(
  answers: readonly Answer[],
  options: ReconnectOptions & {
    plurals?: readonly string[];
    /** Scopes that discovery gives one after the other; then `Cluster`. */
    scopes?: readonly ("Namespaced" | "Cluster")[];
    relists?: ConcurrencyLimit;
    /** Takes the time of each request, in milliseconds. */
    onRequest?: (at: number) => void;
  } = {},
): Promise<string[]> {
  const { plurals = [], scopes = [], relists, onRequest, ...reconnect } =
    options;
  const clock = new VirtualClock();
  const log: string[] = [];
  const waiting = [...answers];
  const names = [...plurals];
  const kinds = [...scopes];
  const isDone = Promise.withResolvers<void>();
  const { plural: _plural, scope: _scope, ...unresolved } = Widget;
  const sink: ReflectorSink = { ...loggedSink(log), flush() {} };
  const reflector = new Reflector({
    client: {
      request(request) {
        const answer = waiting.shift();
        if (answer === undefined) isDone.resolve();
        log.push(textOf(request));
        onRequest?.(clock.now());
        return answer === undefined
          ? new Promise(() => {})
          : answer instanceof ApiError
          ? Promise.reject(answer)
          : Promise.resolve(responseOf(answer));
      },
      resolve: (_kind, { fresh = false } = {}) => {
        if (fresh) log.push("resolved anew");
        const plural = names.shift() ?? "none-left";
        const scope = kinds.shift() ?? "Cluster";
        return Promise.resolve({ ...Widget, plural, scope } as never);
      },
    },
    kind: plurals.length === 0 ? Widget : unresolved,
    namespace: undefined,
    labelSelector: undefined,
    fieldSelector: undefined,
    shardSelector: undefined,
    metadataOnly: false,
    onMoved: ({ scope }) => void log.push(`moved to ${scope}`),
    sink,
    slice: new TimeSlice(clock),
    budget: undefined,
    relists,
    reconnect: resolveOptions(reconnect ?? {}, RECONNECT_OPTIONS),
    clock,
    random: () => 0,
    log: silentLogger,
    metrics: new InformerMetrics(noMetrics, "Widget"),
  });
  let isAskedAll = false;
  void isDone.promise.then(() => isAskedAll = true);
  try {
    reflector.start();
    await clock.runUntil(() => isAskedAll, { limit: 600_000 });
  } finally {
    await reflector.stop();
  }
  return log;
}

function textOf({ path }: ApiRequest): string {
  const url = new URL(path, "http://server");
  const { searchParams: query } = url;
  const verb = query.get("watch") === "true"
    ? query.get("sendInitialEvents") === "true" ? "stream" : "watch"
    : "list";
  const token = query.get("continue");
  const plural = url.pathname.split("/").at(-1);
  const from = token === null
    ? query.get("resourceVersion") ?? "newest"
    : token;
  return `${verb} ${plural} ${from}`;
}

function responseOf(answer: object): HttpResponse {
  const text = Array.isArray(answer)
    ? answer.map((line) => `${JSON.stringify(line)}\n`).join("")
    : JSON.stringify(answer);
  async function* body(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(new TextEncoder().encode(text));
  }
  return {
    status: 200,
    headers: {},
    body: body(),
    cancel: () => Promise.resolve(),
  };
}

test("Reflector lists in pages once, and then watches from where it is", async () => {
  const log = await reflect([
    page(10, ["a"], "next"),
    page(10, ["b"]),
    [event("ADDED", "c", 11), event("DELETED", "a", 12)],
    [event("MODIFIED", "b", 13)],
  ], { watchList: false });
  assert.deepEqual(log, [
    "init",
    "list widgets 0",
    "initApply a",
    "list widgets next",
    "initApply b",
    "initDone 10",
    "watch widgets 10",
    "apply c",
    "delete a",
    "watch widgets 12",
    "apply b",
    "watch widgets 13",
  ]);
});

test("Reflector reads the newest state only when its version is gone", async () => {
  const log = await reflect([
    page(10, ["a"]),
    [event("ADDED", "b", 11), expired],
    page(20, ["a"]),
    refused(404),
    page(21, ["a"]),
  ], { watchList: false });
  assert.deepEqual(log.filter((line) => /^(list|watch)/.test(line)), [
    "list widgets 0",
    "watch widgets 10",
    "list widgets newest",
    "watch widgets 20",
    "list widgets 20",
    "watch widgets 21",
  ]);
});

test("Reflector begins a list again whose continue token has expired", async () => {
  const log = await reflect([
    page(10, ["a", "b"], "next"),
    refused(410),
    page(11, ["b"]),
  ], { watchList: false });
  assert.deepEqual(log, [
    "init",
    "list widgets 0",
    "initApply a",
    "initApply b",
    "list widgets next",
    "init",
    "list widgets 0",
    "initApply b",
    "initDone 11",
    "watch widgets 11",
  ]);
});

test("Reflector leaves the relist queue when its relist fails", async () => {
  const log = await reflect([
    page(10, ["a"]),
    [expired],
    refused(500), // the relist, which has the only place
    page(20, ["a"]),
  ], { watchList: false, relists: new ConcurrencyLimit(1) });
  assert.deepEqual(log.filter((line) => /^(list|watch)/.test(line)), [
    "list widgets 0",
    "watch widgets 10",
    "list widgets newest",
    "list widgets newest",
    "watch widgets 20",
  ]);
});

test("Reflector waits longer only for short watches that deliver nothing", async () => {
  for (const delivers of [true, false]) {
    const times: number[] = [];
    const watch = delivers ? [event("MODIFIED", "a", 11)] : [];
    await reflect([page(10, ["a"]), watch, watch, watch, watch], {
      watchList: false,
      onRequest: (at) => times.push(at),
    });
    const pauses = times.slice(2).map((at, index) => at - times[index + 1]!);
    assert.deepEqual(
      pauses,
      delivers ? [800, 800, 800, 800] : [800, 1_600, 3_200, 6_400],
    );
  }
});

test("Reflector never asks for a stream again that a server has refused as such", async () => {
  const bad = {
    type: "ERROR",
    object: { kind: "Status", code: 500, reason: "InternalError" },
  };
  const log = await reflect([
    refused(400), // the stream
    page(1, []),
    [bad],
    page(2, []),
    [expired],
    page(3, []),
  ]);
  assert.deepEqual(
    log.filter((line) => /^(list|stream)/.test(line))
      .map((line) => line.split(" ")[0]),
    ["stream", "list", "list", "list"],
  );
});

test("Reflector resolves a kind again that the server no longer serves", async () => {
  const log = await reflect([
    [event("ADDED", "a", 1), synced(1)],
    refused(404),
    [synced(2)],
  ], { plurals: ["old", "new"] });
  assert.deepEqual(log.filter((line) => /^(stream|watch)/.test(line)), [
    "stream old newest",
    "watch old 1",
    "stream new 1",
    "watch new 2",
  ]);
});

for (
  const [how, answers, scopes] of [
    ["a watch", [[synced(1)], [event("ADDED", "a", 2)], [synced(3)]]],
    ["a stream", [[event("ADDED", "a", 1)], [synced(3)]]],
    ["a page", [refused(500), page(1, ["a"]), [synced(3)]]],
  ].map((
    [how, answers],
  ) => [how, answers, ["Namespaced", "Cluster"]]) as unknown as readonly [
    string,
    readonly Answer[],
    readonly ("Namespaced" | "Cluster")[],
  ][]
) {
  test(`Reflector notices by an object of ${how} that its kind has another scope`, async () => {
    const log = await reflect(answers, { plurals: ["same", "same"], scopes });
    assert.deepEqual(
      log.filter((line) => /^(resolved|moved)/.test(line)),
      ["resolved anew", "moved to Cluster"],
    );
    assert.ok(
      log.every((line) => !/^(apply|initApply) a/.test(line)),
      `${log}`,
    );
  });
}

test("Reflector streams its state again after a failed stream, but not always", async () => {
  const log = await reflect([
    refused(500), // the stream
    page(1, []),
    [expired],
    [synced(2)], // a stream again
    [expired],
    refused(500),
    page(3, []),
    [expired],
    refused(500),
    page(4, []),
    [expired],
    refused(500), // the third failure since one was good
    page(5, []),
    [expired],
    page(6, []),
  ]);
  assert.deepEqual(
    log.filter((line) => /^(list|stream)/.test(line))
      .map((line) => line.split(" ")[0]),
    ["stream", "list", "stream", "stream", "list", "stream", "list"].concat(
      ["stream", "list", "list"],
    ),
  );
});
