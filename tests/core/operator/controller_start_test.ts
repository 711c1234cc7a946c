import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock } from "@coracle/dev";
import {
  ApiError,
  type Client,
  type Kind,
  silentLogger,
} from "@coracle/operator/client";
import { defineKind } from "@coracle/operator/crd";
import { ConfigMap, Node, Secret } from "@coracle/operator/kinds";
import type { ControllerDeps } from "../../../core/controller/controller.ts";
import {
  checkSameKind,
  type ManagedController,
  startController,
} from "../../../core/operator/controller_start.ts";
import { logSyncProgress } from "../../../core/operator/sync_progress.ts";
import { ConcurrencyLimit } from "../../../core/pace.ts";

/** A registered controller whose start a function answers, and what became of it. */
function startOf(
  startErrors: "fail" | "wait",
  answer: (attempt: number) => Promise<void>,
  /** Called by each look at the server before a start. */
  looked: () => void = () => {},
  parts: object = {},
) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const pauses: unknown[] = [];
  const log = {
    warn: (_text: string, fields: { readonly retryIn?: number }) =>
      pauses.push(fields.retryIn),
  };
  const client = {
    resolve: () => Promise.resolve(ConfigMap),
    list: () => {
      looked();
      return Promise.resolve({ items: [], metadata: {} });
    },
  } as unknown as Client;
  const counts = { starts: 0, cancels: 0 };
  const controller = {
    name: "late",
    kind: ConfigMap,
    watchedKinds: [ConfigMap],
    watching: [],
    settings: { selection: {} },
    start: () => answer(++counts.starts),
    cancelStart: () => {
      counts.cancels++;
      return Promise.resolve();
    },
    ...parts,
  } as unknown as ManagedController;
  const controllers = new Map([["late", controller]]);
  const informers = { expect() {} };
  const deps = { clock, log, client, informers, namespaces: "all" };
  return {
    clock,
    pauses,
    controllers,
    counts,
    stop,
    started: startController(controller, {
      deps: deps as unknown as ControllerDeps,
      client,
      startErrors,
      syncTimeout: 600_000,
      signal: stop.signal,
      controllers,
      checks: new ConcurrencyLimit(1),
    }),
  };
}

test("Controller that cannot start is retried after 1 s, doubled up to 30 s", async () => {
  const { clock, pauses, counts, started } = startOf("wait", (attempt) => {
    return attempt <= 7 ? Promise.reject(new Error("no")) : Promise.resolve();
  });
  await clock.advance(120_000);
  await started;
  assert.deepEqual(pauses, [1, 2, 4, 8, 16, 30, 30].map((s) => 1_000 * s));
  assert.deepEqual(counts, { starts: 8, cancels: 7 });
});

test("Controller that is unregistered during a pause is not started again", async () => {
  const { clock, controllers, counts, pauses, started } = startOf(
    "wait",
    () => Promise.reject(new Error("no")),
  );
  await clock.advance(500);
  controllers.clear();
  await clock.advance(60_000);
  await started;
  assert.deepEqual(counts, { starts: 1, cancels: 1 });
  assert.deepEqual(pauses, [1_000, undefined]);
});

test("Controller that cannot start ends its start with the stop of its operator", async () => {
  const { clock, counts, pauses, started, stop } = startOf(
    "wait",
    () => Promise.reject(new Error("no")),
  );
  const rejected = assert.rejects(started, /^Error: it stops$/);
  await clock.advance(500);
  stop.abort(new Error("it stops"));
  await rejected;
  assert.deepEqual(counts, { starts: 1, cancels: 1 });
  assert.deepEqual(pauses, [1_000]);
  assert.equal(clock.pendingTimers, 0);
});

test("Controller whose operator stops while its kind is looked up is not started", async () => {
  const { counts, started, stop } = startOf(
    "fail",
    () => Promise.resolve(),
    () => stop.abort(new Error("it stops")),
  );
  await assert.rejects(started, /^Error: it stops$/);
  assert.equal(counts.starts, 0);
});

test("Controller that is unregistered while its kind is looked up is not started", async () => {
  const { controllers, counts, started } = startOf(
    "fail",
    () => Promise.resolve(),
    () => controllers.clear(),
  );
  await assert.rejects(
    started,
    /^Error: Cannot start controller "late": it was unregistered$/,
  );
  assert.equal(counts.starts, 0);
});

test("checkSameKind refuses two controllers that would clean up the same objects", () => {
  const controller = (name: string, parts: object, kind: object = ConfigMap) =>
    ({
      name,
      kind,
      settings: {
        usesFinalizer: true,
        finalizer: undefined,
        namespaces: "all",
        selection: {},
        ...parts,
      },
    }) as unknown as ManagedController;
  const labels = (labelSelector: string) => ({ selection: { labelSelector } });
  const collide: readonly (readonly [object, object])[] = [
    [{}, {}],
    [{ namespaces: ["a"] }, {}],
    [{ namespaces: ["a", "b"] }, { namespaces: ["b", "c"] }],
    [labels("app=a"), {}],
    [labels("app=a"), labels("app=a")],
  ];
  for (const [one, other] of collide) {
    const check = () =>
      checkSameKind(controller("one", one), controller("other", other));
    assert.throws(check, /"one": it and "other" clean up ConfigMap objects/);
  }
  const apart: readonly (readonly [object, object, object?])[] = [
    [{ namespaces: ["a"] }, { namespaces: ["b"] }],
    [labels("app=a"), labels("app=b")],
    [{ finalizer: "example.com/one" }, {}],
    [{ usesFinalizer: false }, {}],
    [{}, { usesFinalizer: false }],
    [{}, {}, { ...ConfigMap, group: "example.com" }],
    [{}, {}, { ...ConfigMap, kind: "Other" }],
  ];
  for (const [one, other, kind] of apart) {
    checkSameKind(controller("one", one), controller("other", other, kind));
  }
});

/** Starts a controller with the policy "fail"; `refuse` answers its requests. */
function checkedStart(
  parts: object = {},
  refuse: (request: string) => Error | undefined = () => undefined,
  checks: ConcurrencyLimit = new ConcurrencyLimit(1),
) {
  const clock = new VirtualClock();
  const requests: string[] = [];
  const ask = <T>(text: string, answer: T): Promise<T> => {
    requests.push(text);
    const refusal = refuse(text);
    return refusal === undefined
      ? Promise.resolve(answer)
      : Promise.reject(refusal);
  };
  const scopeOf = (kind: Kind) =>
    kind.kind === "Node" ? "Cluster" : "Namespaced";
  const client = {
    resolve: (kind: Kind) =>
      ask(`resolve ${kind.kind}`, {
        plural: "parts",
        ...kind,
        scope: scopeOf(kind),
      }),
    list: (
      { kind }: Kind,
      { namespace, fieldSelector }: {
        readonly namespace?: string;
        readonly fieldSelector?: string;
      },
    ) =>
      ask(
        ["list", kind, namespace ?? "all", fieldSelector].join(" ").trim(),
        { items: [], metadata: {} },
      ),
  } as unknown as Client;
  const controller = {
    name: "checked",
    kind: ConfigMap,
    watchedKinds: [ConfigMap],
    watching: [],
    settings: { selection: {} },
    start: () => ask("start", undefined),
    ...parts,
  } as unknown as ManagedController;
  const deps = {
    clock,
    log: silentLogger,
    client,
    informers: { expect() {} },
    namespaces: ["a", "b"],
  };
  const started = startController(controller, {
    deps: deps as unknown as ControllerDeps,
    client,
    startErrors: "fail",
    syncTimeout: 600_000,
    signal: new AbortController().signal,
    controllers: new Map([["checked", controller]]),
    checks,
  });
  return { requests, started };
}

const watching = (kind: Kind, selection: object = {}) => ({ kind, selection });
const forbidden = new ApiError("Forbidden", {
  status: 403,
  reason: "Forbidden",
});
const broken = new ApiError("Broken", { status: 500, reason: "InternalError" });

test("Controller waits until few others look up what they watch", async () => {
  const checks = new ConcurrencyLimit(1);
  checks.enter();
  const { requests, started } = checkedStart({}, () => undefined, checks);
  await new Promise(setImmediate);
  assert.deepEqual(requests, []);
  checks.leave();
  await started;
  assert.equal(requests.at(-1), "start");
  await assert.rejects(checkedStart({}, () => broken, checks).started);
  // Both have given their place back.
  assert.equal(checks.enter(), undefined);
});

test("Controller looks up each kind and lists it in each of its namespaces", async () => {
  const fieldSelector = "metadata.name=x";
  const { requests, started } = checkedStart({
    watchedKinds: [ConfigMap, Secret, Node],
    watching: [
      watching(Secret),
      watching(Secret),
      watching(Secret, { fieldSelector, namespaces: ["c"] }),
      watching(Secret, { namespaces: "all" }),
      watching(Node),
    ],
  });
  await started;
  const lists = requests.filter((text) => !text.startsWith("resolve "));
  assert.deepEqual(lists, [
    "list ConfigMap a",
    "list ConfigMap b",
    "list Secret a",
    "list Secret b",
    `list Secret c ${fieldSelector}`,
    "list Secret all",
    "list Node all",
    "start",
  ]);
  for (const kind of ["ConfigMap", "Secret", "Node"]) {
    assert.ok(requests.includes(`resolve ${kind}`));
  }
});

test("Controller starts without a list of secondaries that fails, unless refused", async () => {
  const parts = { watching: [watching(Secret)] };
  const refusing = (error: Error) => (text: string) =>
    text === "list Secret a" ? error : undefined;
  await checkedStart(parts, refusing(broken)).started;
  await assert.rejects(checkedStart(parts, refusing(forbidden)).started);
  const bad = new ApiError("Bad", { status: 400, reason: "BadRequest" });
  await assert.rejects(checkedStart(parts, refusing(bad)).started, bad);
});

test("Controller reports a lookup that fails as it is, and a missing kind by name", async () => {
  const missing = new ApiError("None", { status: 404, reason: "NotFound" });
  const refusing = (error: Error) => (text: string) =>
    text === "resolve ConfigMap" ? error : undefined;
  await assert.rejects(
    checkedStart({}, refusing(broken)).started,
    (error) => error === broken,
  );
  await assert.rejects(
    checkedStart({}, refusing(missing)).started,
    /^Error: Cannot watch v1 ConfigMap: the server does not serve it/,
  );
});

test("Controller of a kind without a scope accepts that of the server", async () => {
  const { scope: _scope, ...unscoped } = ConfigMap;
  await checkedStart({ kind: unscoped, watchedKinds: [unscoped] }).started;
  const other = { ...ConfigMap, scope: "Cluster" };
  await assert.rejects(
    checkedStart({ kind: other, watchedKinds: [other] }).started,
    /received Cluster for Namespaced$/,
  );
});

test("Controller that waits for its kinds starts with those that are served", async () => {
  const options: unknown[] = [];
  const { clock, started } = startOf(
    "wait",
    () => Promise.resolve(),
    () => {},
    {
      start: (_deps: unknown, given: unknown) => {
        options.push(given);
        return Promise.resolve();
      },
    },
  );
  await clock.settle();
  await started;
  assert.deepEqual(options, [{ partly: true }]);
});

test("logSyncProgress logs every five seconds until it is cancelled", async () => {
  const clock = new VirtualClock();
  const logged: string[] = [];
  const progress = logSyncProgress({
    clock,
    informers: { size: 0, syncing: () => [] },
    log: { info: (text: string) => logged.push(text) },
  } as unknown as ControllerDeps, new Map());
  await clock.advance(11_000);
  assert.equal(logged.length, 2);
  progress.cancel();
  await clock.advance(60_000);
  assert.equal(logged.length, 2);
  assert.equal(clock.pendingTimers, 0);
});

test("Controller installs no definition that it was not asked to", async () => {
  const Part = defineKind({
    group: "example.com",
    version: "v1",
    kind: "Part",
    spec: z.object({}),
  });
  const { requests, started } = checkedStart({
    kind: Part,
    watchedKinds: [Part],
  });
  await started;
  assert.deepEqual(requests.slice(-3), ["list Part a", "list Part b", "start"]);
});
