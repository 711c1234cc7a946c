import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type KubernetesObject,
  noUpdate,
  type Reconciler,
} from "@coracle/operator/core";
import type { ShardAssignment } from "../../../../core/controller/shard.ts";
import { Dispatcher } from "../../../../core/controller/run/dispatcher.ts";
import { Run } from "../../../../core/controller/run/run.ts";
import { leveledLogger } from "../../../../core/logger.ts";

const GADGET: KubernetesObject = {
  metadata: { namespace: "default", name: "a" },
};

/** Dispatches a run of a gadget to a reconciler. */
function dispatched(
  reconciler: Reconciler<KubernetesObject>,
  {
    read,
    allEvents = false,
    mayRun = () => true,
    shard,
    failsToWrite,
    ...parts
  }: {
    readonly failsToWrite?: boolean;
    readonly mayRun?: () => boolean;
    readonly shard?: ShardAssignment;
    readonly usesFinalizer?: boolean;
    readonly read?: () => Promise<KubernetesObject | undefined>;
    readonly allEvents?: boolean;
    readonly isUnread?: boolean;
    readonly deleted?: boolean;
    readonly primary?: KubernetesObject;
  } = {},
) {
  const { usesFinalizer = false, ...start } = parts;
  const writes: string[] = [];
  const signals: AbortSignal[] = [];
  const logged: string[] = [];
  const dispatcher = new Dispatcher<KubernetesObject>({
    reconciler,
    workflow: undefined,
    mode: { usesFinalizer, allEvents },
    pauseAnnotation: "example.com/paused",
    mayRun,
    shard,
    tracer: undefined,
    runDeps: {
      keptFinalizer: usesFinalizer ? "example.com/finalizer" : undefined,
      log: leveledLogger("debug", (level, message) => {
        logged.push(`${level}: ${message}`);
      }),
      primaries: { cache: { read } },
    } as never,
    writer: {
      hasWork: (_primary: unknown, result: unknown) => result !== undefined,
      write(
        _context: unknown,
        { signal, succeeded }: {
          readonly signal: AbortSignal;
          readonly succeeded: boolean;
        },
      ) {
        writes.push(succeeded ? "write" : "write of a failure");
        signals.push(signal);
        if (failsToWrite) throw new Error("no write");
      },
      addFinalizer: () => {
        writes.push("finalizer");
        return Promise.resolve(GADGET);
      },
    } as never,
  });
  const run = new Run<KubernetesObject>({
    key: "default/a",
    isUnread: false,
    deleted: false,
    primary: GADGET,
    ...start,
  } as never);
  const result = Promise.resolve(dispatcher.dispatch(run));
  return { run, writes, signals, logged, result };
}

/** A run of an object that is read first, and how often it was reconciled. */
function unreadRun() {
  const read = Promise.withResolvers<KubernetesObject | undefined>();
  const reconciled: KubernetesObject[] = [];
  const run = dispatched(
    { reconcile: (object) => void reconciled.push(object) },
    { isUnread: true, read: () => read.promise },
  );
  return { read, reconciled, ...run };
}

test("Dispatcher reconciles an object that it has read first", async () => {
  const { read, reconciled, run, result } = unreadRun();
  const object = { ...GADGET, spec: {} };
  read.resolve(object);
  assert.deepEqual((await result).end, { type: "done" });
  assert.deepEqual(reconciled, [object]);
  assert.equal(run.primary, object);
});

test("Dispatcher does not reconcile what is gone when it is read", async () => {
  const { read, reconciled, result } = unreadRun();
  read.resolve(undefined);
  assert.deepEqual((await result).end, { type: "done" });
  assert.deepEqual(reconciled, []);
});

test("Dispatcher does not reconcile in a run that was aborted while it read", async () => {
  const { read, reconciled, run, result } = unreadRun();
  run.abort("timeout");
  read.resolve(GADGET);
  const { end, error } = await result;
  assert.equal(end.type, "failed");
  assert.match(String(error), /timeout/);
  assert.deepEqual(reconciled, []);
});

test("Dispatcher does not reconcile if its lease expired while it wrote or read", async () => {
  let isHeld = true;
  let reconciled = 0;
  const reconciler = { reconcile: () => void reconciled++ };
  for (
    const [cause, lease] of [
      ["leadership", { mayRun: () => isHeld }],
      ["shard", { shard: { owns: () => isHeld } }],
    ] as const
  ) {
    reconciled = 0;
    isHeld = true;
    const parts = { usesFinalizer: true, ...lease };
    const held = dispatched(reconciler, parts);
    assert.deepEqual((await held.result).end, { type: "done" });
    const written = dispatched(reconciler, parts);
    const read = dispatched(reconciler, {
      ...parts,
      isUnread: true,
      read: () => Promise.resolve(GADGET),
    });
    isHeld = false;
    for (const { run, result } of [written, read]) {
      assert.equal((await result).end.type, "failed");
      assert.equal(run.aborted, cause);
    }
    assert.deepEqual(written.writes, ["finalizer"]);
    assert.equal(reconciled, 1);
  }
});

test("Dispatcher aborts a run that fails when its lease has expired", async () => {
  let isHeld = true;
  let handled = 0;
  const fails = () => {
    isHeld = false;
    throw new Error("this replica is not the leader");
  };
  const reconciler = {
    reconcile: fails,
    cleanup: fails,
    onError: () => void handled++,
  };
  const metadata = {
    ...GADGET.metadata,
    deletionTimestamp: "2026-01-01T00:00:00Z",
    finalizers: ["example.com/finalizer"],
  };
  for (const primary of [GADGET, { metadata }]) {
    const parts = { primary, usesFinalizer: primary !== GADGET };
    for (
      const [cause, lease] of [
        ["leadership", { mayRun: () => isHeld }],
        ["shard", { shard: { owns: () => isHeld } }],
      ] as const
    ) {
      isHeld = true;
      const { run, result } = dispatched(reconciler, { ...parts, ...lease });
      assert.equal((await result).end.type, "failed");
      assert.equal(run.aborted, cause);
    }
  }
  assert.equal(handled, 0);
});

test("Dispatcher pauses an object with the annotation, unless it is deleted", async () => {
  const primary = {
    metadata: {
      ...GADGET.metadata,
      annotations: { "example.com/paused": "true" },
    },
  };
  for (const deleted of [false, true]) {
    let runs = 0;
    const { result } = dispatched(
      { reconcile: () => void runs++ },
      { allEvents: true, deleted, primary },
    );
    assert.deepEqual((await result).end, { type: "done" });
    assert.equal(runs, Number(deleted));
  }
});

test("Dispatcher fails a run that has succeeded only after its timeout", async () => {
  const work = Promise.withResolvers<void>();
  const { run, result } = dispatched({ reconcile: () => work.promise });
  run.abort("timeout");
  work.resolve();
  assert.equal((await result).end.type, "failed");
});

test("Dispatcher plans what onError returns: a delay, a retry or neither", async () => {
  const error = new Error("down");
  const ends = [
    [noUpdate(), false, undefined],
    [noUpdate().withoutRetry(), true, undefined],
    [noUpdate().rescheduleAfter("1s"), true, 1_000],
  ] as const;
  for (const [returned, final, delay] of ends) {
    const { result } = dispatched({
      reconcile() {
        throw error;
      },
      onError: () => returned,
    });
    assert.deepEqual(await result, {
      end: { type: "failed", final, delay },
      error,
    });
  }
});

test("Dispatcher writes and plans nothing for an object that is deleted", async () => {
  const planned = noUpdate().rescheduleAfter("1s");
  const start = { allEvents: true, deleted: true };
  const { result, writes } = dispatched({ reconcile: () => planned }, start);
  assert.deepEqual((await result).end, { type: "done" });
  const failing = dispatched({
    reconcile() {
      throw new Error("down");
    },
    onError: () => planned,
  }, start);
  assert.equal((await failing.result).end.type, "failed");
  assert.deepEqual([...writes, ...failing.writes], []);
});

test("Dispatcher calls onError after a timeout, and after no other abort", async () => {
  for (const cause of ["timeout", "deletion", "leadership"] as const) {
    const work = Promise.withResolvers<void>();
    let calls = 0;
    const { run, result } = dispatched({
      reconcile: () => work.promise,
      onError: () => void calls++,
    });
    run.abort(cause);
    work.reject(new Error("aborted"));
    assert.equal((await result).end.type, "failed");
    assert.equal(calls, Number(cause === "timeout"), cause);
  }
});

test("Dispatcher writes the result of onError after a timeout, unlike after a stop", async () => {
  for (const cause of ["timeout", undefined] as const) {
    const work = Promise.withResolvers<void>();
    const { run, signals, result } = dispatched({
      reconcile: () => work.promise,
      onError: () => noUpdate(),
    });
    if (cause !== undefined) run.abort(cause);
    work.reject(new Error("failed"));
    await result;
    const states = () => signals.map(({ aborted }) => aborted);
    assert.deepEqual(states(), [false]);
    run.abort("shutdown");
    assert.deepEqual(states(), [cause === undefined]);
  }
});

test("Dispatcher warns of a status that cannot be written, unless an event came", async () => {
  for (const hasEvent of [false, true]) {
    const { run, result, logged } = dispatched({
      reconcile: () => Promise.reject(new Error("failed")),
      onError: () => noUpdate(),
    }, { failsToWrite: true, ...{ retry: { attempt: 0, last: false } } });
    run.hasNewEvent = () => hasEvent;
    assert.equal((await result).end.type, "failed");
    const line = "Cannot write the status of a failed run";
    assert.deepEqual(logged, [`${hasEvent ? "debug" : "warn"}: ${line}`]);
  }
});

test("Dispatcher writes results as those of a success or a failure, if there are any", async () => {
  const fails = () => {
    throw new Error("failed");
  };
  const cases: readonly [Reconciler<KubernetesObject>, readonly string[]][] = [
    [{ reconcile: () => noUpdate() }, ["write"]],
    [{ reconcile: () => Promise.resolve(noUpdate()) }, ["write"]],
    [{ reconcile() {} }, []],
    [{ reconcile: fails, onError: () => noUpdate() }, ["write of a failure"]],
    [{ reconcile: fails, onError() {} }, []],
  ];
  for (const [reconciler, expected] of cases) {
    const { result, writes } = dispatched(reconciler);
    const { end } = await result;
    assert.deepEqual(writes, expected);
    if (end.type === "failed") assert.equal(end.final, false);
  }
});
