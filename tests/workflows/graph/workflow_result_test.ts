import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Duration,
  type KubernetesObject,
  systemClock,
} from "@coracle/operator/client";
import {
  type Condition,
  isCurrent,
  isGone,
  type NodeResult,
  WorkflowError,
  WorkflowResult,
} from "@coracle/operator/workflows";
import { asVerdict } from "../../../workflows/graph/node.ts";

function result(nodes: Record<string, Partial<NodeResult>>): WorkflowResult {
  return new WorkflowResult(
    new Map(
      Object.entries(nodes).map(([name, node]) => [
        name,
        { state: "reconciled", verdicts: {}, ...node },
      ]),
    ),
  );
}

test("WorkflowResult keeps the transition time of an equal condition", () => {
  const object = (
    conditions: Condition[],
  ): KubernetesObject & { status: { conditions: Condition[] } } => ({
    metadata: { name: "x", generation: 3 },
    status: { conditions },
  });
  const other: Condition = {
    type: "Reachable",
    status: "True",
    reason: "Pinged",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  const waiting = result({
    database: {
      state: "notReady",
      verdicts: { readyWhen: { met: false, message: "1 of 3 are up" } },
    },
    schema: { state: "waiting", waitingFor: ["database"] },
  });
  const first = waiting.rollUp(object([other]), { now: 0 });
  assert.deepEqual(first, [{
    type: "Ready",
    status: "False",
    reason: "Progressing",
    message: "Waiting for database (1 of 3 are up)",
    lastTransitionTime: "1970-01-01T00:00:00Z",
    observedGeneration: 3,
  }, other]);
  const again = waiting.rollUp(object(first), { now: 60_000 });
  assert.equal(again[0]?.lastTransitionTime, "1970-01-01T00:00:00Z");
  const done = result({ database: {}, schema: { state: "skipped" } })
    .rollUp(object(again), { now: 60_000 });
  assert.deepEqual(done[0], {
    type: "Ready",
    status: "True",
    reason: "Reconciled",
    message: "2 of 2 are done",
    lastTransitionTime: "1970-01-01T00:01:00Z",
    observedGeneration: 3,
  });
});

test("WorkflowResult puts failures first, with what was thrown [F31]", () => {
  const failed = result({
    a: { state: "failed", error: new Error("no route") },
    b: { state: "notReady" },
    c: { state: "deleting", verdicts: { deletedWhen: { met: false } } },
  });
  assert.deepEqual(failed.toCondition("Synced"), {
    type: "Synced",
    status: "False",
    reason: "Failed",
    message: "Failed: a (no route)",
  });
  assert.throws(() => failed.throwIfFailed(), (error: unknown) => {
    assert.ok(error instanceof WorkflowError);
    assert.equal(error.result, failed);
    assert.match(error.message, /1 of 3 nodes failed: a: no route$/);
    return true;
  });
  assert.equal(failed.summary, "a failed, b notReady, c deleting");
  assert.throws(() => failed.node("d"), /no such node: received "d"/);
});

test("WorkflowResult asks for a run when the soonest condition wants to be asked again", () => {
  const recheck = (recheckAfter: Duration) => ({
    verdicts: { readyWhen: { met: false, recheckAfter } },
  });
  assert.equal(result({ a: {} }).rescheduleAfter, undefined);
  assert.equal(
    result({ a: recheck("1m"), b: recheck("5s"), c: {} }).rescheduleAfter,
    5_000,
  );
});

test("isCurrent and isGone check the object, as kubectl wait does", () => {
  assert.deepEqual(isCurrent({ resource: undefined }), {
    met: false,
    message: "It does not exist",
  });
  const deployment = (readyReplicas: number): KubernetesObject & object => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", generation: 1 },
    spec: { replicas: 2 },
    status: {
      observedGeneration: 1,
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas,
      availableReplicas: readyReplicas,
      conditions: [{ type: "Available", status: "True" }],
    },
  } as KubernetesObject);
  assert.equal(isCurrent({ resource: deployment(2) }).met, true);
  const verdict = isCurrent({ resource: deployment(1) });
  assert.equal(verdict.met, false);
  assert.equal(verdict.detail, "InProgress");
  assert.match(verdict.message ?? "", /1/);
  assert.equal(isGone({ resource: undefined }).met, true);
  assert.equal(isGone({ resource: deployment(1) }).met, false);
});

test("isCurrent measures the age of a pod by the clock of the run", () => {
  const resource = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", creationTimestamp: "2026-01-01T00:00:00Z" },
    status: {
      phase: "Pending",
      conditions: [
        { type: "PodScheduled", status: "False", reason: "Unschedulable" },
      ],
    },
  };
  const at = (time: string) =>
    isCurrent({
      resource,
      ctx: { clock: { ...systemClock, wallTime: () => Date.parse(time) } },
    }).detail;
  assert.equal(at("2026-01-01T00:00:01Z"), "InProgress");
  assert.equal(at("2026-01-01T01:00:00Z"), "Failed");
});

test("isCurrent is met by a Job that has succeeded, not by one that runs", () => {
  const job = (type?: "Complete" | "Failed"): KubernetesObject =>
    ({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "migrate", generation: 1 },
      status: {
        startTime: "2026-01-01T00:00:00Z",
        active: type === undefined ? 1 : 0,
        conditions: type === undefined ? [] : [{ type, status: "True" }],
      },
    }) as KubernetesObject;
  const met = (type?: "Complete" | "Failed") =>
    isCurrent({ resource: job(type) }).met;
  assert.deepEqual([met(), met("Failed"), met("Complete")], [
    false,
    false,
    true,
  ]);
});

test("asVerdict takes booleans and verdicts, and nothing else", () => {
  const asked = { node: "a", condition: "readyWhen" } as const;
  assert.deepEqual(asVerdict(true, asked), { met: true });
  assert.deepEqual(asVerdict({ met: false, detail: 1 }, asked), {
    met: false,
    detail: 1,
  });
  for (const rubbish of [undefined, null, "yes", {}, { met: "yes" }]) {
    assert.throws(
      () => asVerdict(rubbish, asked),
      /node "a": "readyWhen" must/,
    );
  }
});

test("WorkflowError names five errors by their first line of 200 characters", () => {
  const failed = (index: number): [string, Partial<NodeResult>] => [
    `n${index}`,
    { state: "failed", error: new Error(`${"x".repeat(300)}\nsecond line`) },
  ];
  const nodes = Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map(failed));
  const { message, errors } = new WorkflowError(result(nodes));
  const text = `${"x".repeat(199)}…`;
  assert.equal(
    message,
    `Cannot finish the workflow: 7 of 7 nodes failed: n1: ${text}; n2: ${text}; n3: ${text}; n4: ${text}; n5: ${text}; and 2 more`,
  );
  assert.equal(errors.length, 7);
});

test("WorkflowError shortens messages after 200 characters, and counts the sixth", () => {
  const failing = (length: number, count = 1) => {
    const error = new Error("x".repeat(length));
    const names = Array.from({ length: count }, (_, index) => `n${index}`);
    return new WorkflowError(
      result(
        Object.fromEntries(
          names.map((name) => [name, { state: "failed", error }] as const),
        ),
      ),
    ).message;
  };
  assert.match(failing(200), /: n0: x{200}$/);
  assert.match(failing(201), /: n0: x{199}…$/);
  assert.match(failing(1, 5), /n4: x$/);
  assert.match(failing(1, 6), /n4: x; and 1 more$/);
});

test("WorkflowResult is rescheduled by the soonest of all its verdicts", () => {
  const flow = result({
    a: {
      verdicts: {
        activeWhen: { met: true },
        readyWhen: { met: false, recheckAfter: "3s" },
      },
    },
    b: { verdicts: { readyWhen: { met: false, recheckAfter: 5_000 } } },
    c: { verdicts: { readyWhen: { met: false, recheckAfter: "1m" } } },
  });
  assert.equal(flow.rescheduleAfter, 3_000);
});

test("WorkflowResult names what is deleted, with a reason that is not empty", () => {
  const { message } = result({
    a: {
      state: "deleting",
      verdicts: {
        readyWhen: { met: true, message: "it runs" },
        deletedWhen: { met: false, message: "it is drained" },
      },
    },
    b: {
      state: "notReady",
      verdicts: { readyWhen: { met: false, message: "" } },
    },
    c: { state: "waiting" },
  }).toCondition();
  assert.equal(message, "Waiting for a (it is drained), b");
});
