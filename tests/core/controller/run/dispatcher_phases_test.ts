import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Context,
  keepFinalizer,
  type Logger,
  type ManagedWorkflow,
  noUpdate,
  patchResource,
  patchStatus,
  type Reconciler,
  removeFinalizer,
} from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import { Dispatcher } from "../../../../core/controller/run/dispatcher.ts";
import { RecordedTracer } from "../../../support/recorded_tracer.ts";
import {
  contextOf,
  FINALIZER,
  gadget,
  refused,
} from "../../../support/run_context_case.ts";

type Gadget = ReturnType<typeof gadget>;

const DELETED = gadget({
  finalizers: [FINALIZER],
  deletionTimestamp: "2026-01-01T00:00:00Z",
});
const WITH_FINALIZER = gadget({ finalizers: [FINALIZER] });
const MAP = { metadata: { name: "m" } };

/** Dispatches the run of a gadget with a finalizer. */
function dispatched(
  reconciler: Reconciler<Gadget>,
  { primary, workflow, tracer, answers = [], deleted = false, allEvents }: {
    readonly primary: KubernetesObject;
    readonly workflow?: Partial<ManagedWorkflow<Gadget>>;
    readonly tracer?: RecordedTracer;
    readonly answers?: { status: number; body: unknown }[];
    readonly deleted?: boolean;
    readonly allEvents?: boolean;
  },
) {
  const steps: string[] = [];
  const made = contextOf({ primary, keptFinalizer: FINALIZER, answers });
  const logged: string[] = [];
  const note = (level: string) => (message: string) =>
    void logged.push(`${level}: ${message}`);
  const log = {
    debug: note("debug"),
    warn: note("warn"),
    error: note("error"),
  } as Logger;
  const run = Object.assign(made.run, { deleted });
  const dispatcher = new Dispatcher<Gadget>({
    reconciler,
    workflow: workflow as ManagedWorkflow<Gadget>,
    mode: { usesFinalizer: true, allEvents: allEvents ?? false },
    pauseAnnotation: undefined,
    mayRun: () => true,
    shard: undefined,
    tracer,
    runDeps: { ...made.deps, log: { ...log, with: () => log } } as never,
    writer: {
      hasWork: () => false,
      write: () => Promise.reject(new Error("no write")),
      addFinalizer: () => {
        steps.push("add finalizer");
        return Promise.resolve({ ...WITH_FINALIZER, spec: { added: true } });
      },
      removeFinalizer: () => {
        steps.push(`remove finalizer, releasing: ${run.isReleasing}`);
        return Promise.resolve();
      },
    } as never,
  });
  const result = Promise.resolve(dispatcher.dispatch(run as never));
  return { ...made, run, steps, logged, result };
}

test("Dispatcher reconciles the object that it has added the finalizer to", async () => {
  const seen: object[] = [];
  const { run, steps, result } = dispatched({
    reconcile: ({ spec }) => void seen.push(spec),
  }, { primary: gadget() });
  await result;
  assert.deepEqual(seen, [{ added: true }]);
  assert.deepEqual(steps, ["add finalizer"]);
  assert.equal(run.step, "reconcile");
});

test("Dispatcher removes the finalizer when cleanup and workflow are done", async () => {
  for (const done of [false, true]) {
    const { steps, result } = dispatched({ reconcile() {} }, {
      primary: DELETED,
      workflow: {
        cleanup: () => Promise.resolve({ done, rescheduleAfter: "2s" }),
      },
    });
    const { end } = await result;
    assert.deepEqual(
      [end, steps],
      done
        ? [
          { type: "finalizerRemoved" },
          ["remove finalizer, releasing: true"],
        ]
        : [{ type: "done", delay: 2_000 }, []],
    );
  }
});

test("Dispatcher leaves the workflow to a cleanup that calls it", async () => {
  const results = { own: { done: false }, other: { done: true } };
  for (const cleanup of [undefined, () => keepFinalizer()]) {
    let calls = 0;
    const { result } = dispatched(
      { reconcile() {}, ...cleanup && { cleanup } },
      {
        primary: DELETED,
        workflow: {
          explicit: true,
          cleanup: () => {
            calls++;
            return Promise.resolve(results.own);
          },
          resultIn: () => ({ ...results.other, rescheduleAfter: "3s" }),
        },
      },
    );
    assert.deepEqual((await result).end, {
      type: "done",
      delay: cleanup === undefined ? undefined : 3_000,
    });
    assert.equal(calls, cleanup === undefined ? 1 : 0);
  }
});

test("Dispatcher reschedules a run as its workflow asks, unless the result does", async () => {
  const workflow = {
    reconcile: () =>
      Promise.resolve({ done: false, rescheduleAfter: "4s" } as const),
    resultIn: () => ({ done: false, rescheduleAfter: "5s" } as const),
  } as const;
  const cases = [
    [{ ...workflow, explicit: false }, undefined, 4_000],
    [{ ...workflow, explicit: true }, undefined, 5_000],
    [workflow, noUpdate().rescheduleAfter("1s"), 1_000],
  ] as const;
  for (const [given, returned, delay] of cases) {
    const { result } = dispatched({ reconcile: () => returned }, {
      primary: WITH_FINALIZER,
      workflow: given,
    });
    assert.deepEqual((await result).end, { type: "done", delay });
  }
});

test("Dispatcher fails a run by what its workflow collects, unless it has a delay", async () => {
  const collected = {
    done: false,
    throwIfFailed() {
      throw new Error("collected");
    },
  };
  const workflow = {
    reconcile: () => Promise.resolve(collected),
    cleanup: () => Promise.resolve(collected),
    resultIn: () => collected,
  };
  const outcomes = [
    [noUpdate(), removeFinalizer(), "Error: collected"],
    [undefined, keepFinalizer(), "Error: collected"],
    [
      noUpdate().rescheduleAfter("1s"),
      keepFinalizer().rescheduleAfter("1s"),
      "undefined",
    ],
  ] as const;
  for (const explicit of [false, true]) {
    for (const [reconciled, cleaned, error] of outcomes) {
      for (const primary of [WITH_FINALIZER, DELETED]) {
        const { result, steps } = dispatched({
          reconcile: () => reconciled,
          cleanup: () => cleaned,
        }, { primary, workflow: { ...workflow, explicit } });
        const ended = await result;
        assert.equal(String(ended.error), error);
        assert.equal(ended.end.type, error === "undefined" ? "done" : "failed");
        assert.deepEqual(steps, []);
      }
    }
  }
});

test("Dispatcher calls initContext before a reconcile and before a cleanup", async () => {
  for (const primary of [WITH_FINALIZER, DELETED]) {
    const calls: string[] = [];
    const { result } = dispatched({
      initContext: () => void calls.push("init"),
      reconcile: () => void calls.push("reconcile"),
      cleanup() {
        calls.push("cleanup");
        return keepFinalizer();
      },
    }, { primary });
    await result;
    const second = primary === DELETED ? "cleanup" : "reconcile";
    assert.deepEqual(calls, ["init", second]);
  }
});

test("Dispatcher ends a failed run when its writes without await have ended", async () => {
  for (const primary of [WITH_FINALIZER, DELETED]) {
    const fail = (_gadget: Gadget, ctx: Context<Gadget>) => {
      void ctx.create(ConfigMap, MAP);
      throw new Error("failed");
    };
    const { written, result } = dispatched({
      reconcile: fail,
      cleanup: fail,
    }, { primary });
    assert.equal(String((await result).error), "Error: failed");
    assert.equal(written.length, 2, "begun and ended");
  }
});

test("Dispatcher fails a cleanup whose write without await fails", async () => {
  const { steps, result } = dispatched({
    reconcile() {},
    cleanup(_gadget, ctx) {
      void ctx.create(ConfigMap, MAP);
    },
  }, { primary: DELETED, answers: [refused(403, "Forbidden") as never] });
  assert.equal((await result).end.type, "failed");
  assert.deepEqual(steps, []);
});

test("Dispatcher ignores the end of a run that was aborted but for its timeout", async () => {
  for (const cause of ["deletion", "timeout"] as const) {
    const work = Promise.withResolvers<void>();
    const { run, result } = dispatched({ reconcile: () => work.promise }, {
      primary: WITH_FINALIZER,
    });
    run.abort(cause);
    work.resolve();
    const expected = cause === "timeout" ? "failed" : "done";
    assert.equal((await result).end.type, expected);
  }
});

test("Dispatcher warns of a result for a deleted object", async () => {
  const results = [
    patchStatus({}),
    patchResource({}),
    noUpdate().rescheduleAfter("1s"),
    noUpdate(),
    undefined,
  ];
  for (const [index, returned] of results.entries()) {
    const { logged, result } = dispatched({
      reconcile: () => returned as never,
    }, {
      primary: WITH_FINALIZER,
      deleted: true,
      allEvents: true,
    });
    assert.deepEqual((await result).end, { type: "done" });
    assert.equal(logged.length, index < 3 ? 1 : 0);
  }
});

test("Dispatcher refuses what is no result, and names its fields alone", async () => {
  const wrong = { token: "secret-value" } as never;
  const { result } = dispatched({ reconcile: () => wrong }, {
    primary: WITH_FINALIZER,
  });
  const { error } = await result;
  assert.match(String(error), /received an object with token$/);
  const failing = dispatched({
    reconcile() {
      throw new Error("failed");
    },
    onError: () => wrong,
  }, { primary: WITH_FINALIZER });
  assert.deepEqual((await failing.result).end, {
    type: "failed",
    final: false,
  });
  assert.deepEqual(failing.logged, ["error: onError has thrown"]);
});

test("Dispatcher logs nothing of an onError that returns nothing", async () => {
  const { logged, result } = dispatched({
    reconcile() {
      throw new Error("failed");
    },
    onError() {},
  }, { primary: WITH_FINALIZER });
  assert.equal((await result).end.type, "failed");
  assert.deepEqual(logged, []);
});

test("Dispatcher gives each method its own copy of the primary", async () => {
  for (const given of [WITH_FINALIZER, DELETED]) {
    const primary = structuredClone(given) as Gadget;
    const change = (gadget: Gadget) => {
      gadget.metadata.labels = { changed: "true" };
    };
    const { result } = dispatched({
      reconcile(gadget) {
        change(gadget);
        throw new Error("failed");
      },
      onError(gadget) {
        assert.equal(gadget.metadata.labels, undefined);
        change(gadget);
      },
      cleanup: (gadget) => change(gadget),
    }, { primary });
    await result;
    assert.equal(primary.metadata.labels, undefined);
  }
});

test("Dispatcher records the failure of a run in its span", async () => {
  for (const fails of [false, true]) {
    const tracer = new RecordedTracer();
    const { result } = dispatched({
      reconcile() {
        if (fails) throw new Error("failed");
      },
    }, { primary: WITH_FINALIZER, tracer });
    await result;
    const [span] = tracer.named("run gadget");
    assert.equal(span?.status?.code, fails ? 2 : undefined);
    assert.equal(span?.attributes["coracle.step"], "reconcile");
    assert.equal(span?.ended, true);
  }
});

test("Dispatcher logs that a failure was not written, loudest for the last", async () => {
  const cases = [
    [{ last: false }, false, "warn"],
    [{ last: true }, false, "error"],
    [{ last: true }, true, "debug"],
  ] as const;
  for (const [retry, hasEvent, level] of cases) {
    const { run, logged, result } = dispatched({
      reconcile: () => Promise.reject(new Error("failed")),
      onError: () => noUpdate(),
    }, { primary: WITH_FINALIZER });
    Object.assign(run, { retry, hasNewEvent: () => hasEvent });
    await result;
    assert.deepEqual(logged, [
      `${level}: Cannot write the status of a failed run`,
    ]);
  }
});
