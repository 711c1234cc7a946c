import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../../core/api/object.ts";
import { Dispatcher } from "../../../../core/controller/run/dispatcher.ts";
import { Run } from "../../../../core/controller/run/run.ts";
import { silentLogger } from "../../../../core/logger.ts";

const GADGET: KubernetesObject = {
  metadata: { namespace: "default", name: "a" },
};

/** A run of an object that is read first, and how often it was reconciled. */
function unreadRun() {
  const read = Promise.withResolvers<KubernetesObject | undefined>();
  const reconciled: KubernetesObject[] = [];
  const dispatcher = new Dispatcher<KubernetesObject>({
    reconciler: { reconcile: (object) => void reconciled.push(object) },
    workflow: undefined,
    mode: { usesFinalizer: false, allEvents: false },
    finalizer: undefined,
    pauseAnnotation: undefined,
    log: silentLogger,
    tracer: undefined,
    runDeps: { primaries: { cache: { read: () => read.promise } } } as never,
    writer: { hasWork: () => false } as never,
  });
  const run = new Run<KubernetesObject>({
    key: "default/a",
    isUnread: true,
    primary: GADGET,
  } as never);
  const result = Promise.resolve(dispatcher.dispatch(run));
  return { read, reconciled, run, result };
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
