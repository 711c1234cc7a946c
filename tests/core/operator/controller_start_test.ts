import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../../../core/client/client.ts";
import type { ControllerDeps } from "../../../core/controller/controller.ts";
import { ConfigMap } from "../../../core/kinds/core_v1.ts";
import {
  checkSameKind,
  type ManagedController,
  startController,
} from "../../../core/operator/controller_start.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";

/** A registered controller whose start a function answers, and what became of it. */
function startOf(
  startErrors: "fail" | "wait",
  answer: (attempt: number) => Promise<void>,
  /** Called by each look at the server before a start. */
  looked: () => void = () => {},
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
      return Promise.resolve({ items: [] });
    },
  } as unknown as Client;
  const counts = { starts: 0, cancels: 0 };
  const controller = {
    name: "late",
    kind: ConfigMap,
    watchedKinds: [ConfigMap],
    watching: [],
    settings: {},
    start: () => answer(++counts.starts),
    cancelStart: () => {
      counts.cancels++;
      return Promise.resolve();
    },
  } as unknown as ManagedController;
  const controllers = new Map([["late", controller]]);
  const deps = { clock, log, client, namespaces: "all" };
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
