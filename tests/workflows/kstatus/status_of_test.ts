import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
import {
  augmentStatus,
  lintStatus,
  statusOf,
} from "@coracle/operator/workflows";
import { aggregateStatus } from "../../../workflows/kstatus/status_of.ts";
import { jobCompletionStatus } from "../../../workflows/kstatus/status_rules.ts";

const NOW = Date.parse("2026-01-01T00:01:00Z");

interface Parts {
  readonly metadata?: Record<string, unknown>;
  readonly spec?: unknown;
  readonly status?: unknown;
}

function verdict(apiVersion: string, kind: string, parts: Parts): string {
  const object = {
    apiVersion,
    kind,
    ...parts,
    metadata: { name: "x", ...parts.metadata },
  } as KubernetesObject;
  const { status, reason } = statusOf(object, { now: NOW });
  return reason === "" ? status : `${status} ${reason}`;
}

function condition(type: string, status: string, reason = "Because") {
  return { type, status, reason, message: `${type} message` };
}

const gadget = (parts: Parts) => verdict("example.com/v1", "Gadget", parts);

test("statusOf checks deletion and the observed generation before any rule [K1]", () => {
  assert.equal(
    verdict("v1", "ConfigMap", {
      metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" },
    }),
    "Terminating",
  );
  assert.equal(
    verdict("policy/v1", "PodDisruptionBudget", {
      metadata: { generation: 2 },
      status: { observedGeneration: 1 },
    }),
    "InProgress LatestGenerationNotObserved",
  );
});

test("statusOf reads Reconciling and Stalled of any kind [K1]", () => {
  assert.equal(
    gadget({ status: { conditions: [condition("Reconciling", "True")] } }),
    "InProgress Because",
  );
  assert.equal(
    gadget({ status: { conditions: [condition("Stalled", "True")] } }),
    "Failed Because",
  );
});

test("statusOf goes by Ready where a kind has no rule [K2]", () => {
  assert.equal(gadget({}), "Current");
  assert.equal(
    gadget({ status: { conditions: [condition("Ready", "False")] } }),
    "InProgress Because",
  );
  assert.equal(
    gadget({ status: { conditions: [condition("Ready", "True")] } }),
    "Current",
  );
});

test("statusOf trusts nothing that came from outside", () => {
  for (
    const status of [null, 7, "x", [], { conditions: 3 }, {
      conditions: [null, 1],
    }]
  ) {
    assert.equal(gadget({ status }), "Current");
    assert.match(verdict("v1", "Pod", { status }), /^InProgress/);
    assert.match(verdict("apps/v1", "Deployment", { status }), /^InProgress/);
  }
});

const rolledOut = {
  replicas: 2,
  updatedReplicas: 2,
  availableReplicas: 2,
  readyReplicas: 2,
  conditions: [
    condition("Progressing", "True", "NewReplicaSetAvailable"),
    condition("Available", "True"),
  ],
};
const NO_PODS = {
  replicas: 0,
  updatedReplicas: 0,
  availableReplicas: 0,
  readyReplicas: 0,
};
const two = { replicas: 2, progressDeadlineSeconds: 600 };

test("statusOf follows a Deployment through its rollout [K3]", () => {
  const deployment = (status: object, spec: object = two) =>
    verdict("apps/v1", "Deployment", {
      spec,
      status: { ...rolledOut, ...status },
    });
  assert.equal(deployment({}), "Current");
  assert.equal(deployment({ replicas: 1 }), "InProgress LessReplicas");
  assert.equal(deployment({ updatedReplicas: 1 }), "InProgress LessUpdated");
  assert.equal(deployment({ replicas: 3 }), "InProgress ExtraPods");
  assert.equal(
    deployment({ availableReplicas: 1 }),
    "InProgress LessAvailable",
  );
  assert.equal(deployment({ readyReplicas: 1 }), "InProgress LessReady");
  const available = condition("Available", "True");
  assert.equal(
    deployment({ conditions: [available] }),
    "InProgress ReplicaSetNotAvailable",
  );
  assert.equal(
    deployment({ conditions: [available] }, { replicas: 2 }),
    "Current",
    "no deadline, so nothing is known of progress",
  );
  assert.equal(
    deployment({ conditions: rolledOut.conditions.slice(0, 1) }),
    "InProgress DeploymentNotAvailable",
  );
  assert.equal(
    deployment({
      conditions: [
        condition("Progressing", "False", "ProgressDeadlineExceeded"),
      ],
    }),
    "Failed ProgressDeadlineExceeded",
  );
});

test("statusOf follows a StatefulSet, its partition and its revision [K4]", () => {
  const done = {
    replicas: 4,
    readyReplicas: 4,
    currentReplicas: 4,
    currentRevision: "a",
    updateRevision: "a",
  };
  const set = (status: object, spec: object = {}) =>
    verdict("apps/v1", "StatefulSet", {
      spec: { replicas: 4, ...spec },
      status: { ...done, ...status },
    });
  assert.equal(set({}), "Current");
  assert.equal(set({ replicas: 3 }), "InProgress LessReplicas");
  assert.equal(set({ readyReplicas: 3 }), "InProgress LessReady");
  assert.equal(set({ replicas: 5 }), "InProgress ExtraPods");
  assert.equal(set({ currentReplicas: 3 }), "InProgress LessCurrent");
  assert.equal(set({ updateRevision: "b" }), "InProgress RevisionMismatch");
  const partition = {
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 3 } },
  };
  assert.equal(
    set({ updatedReplicas: 0 }, partition),
    "InProgress PartitionRollout",
  );
  assert.equal(set({ updatedReplicas: 1 }, partition), "Current");
  assert.equal(
    set({ replicas: 0 }, { updateStrategy: { type: "OnDelete" } }),
    "Current",
  );
});

for (const kind of ["Deployment", "StatefulSet", "ReplicaSet"]) {
  test(`statusOf expects one replica of a ${kind} that names no number`, () => {
    const status = { ...rolledOut, ...NO_PODS };
    for (const spec of [{}, { replicas: undefined }, undefined]) {
      const found = verdict("apps/v1", kind, { spec, status });
      assert.match(found, /^InProgress Less/);
    }
    const none = { spec: { replicas: 0 }, status };
    assert.equal(verdict("apps/v1", kind, none), "Current");
  });
}

test("statusOf follows a DaemonSet over its nodes [K5]", () => {
  const done = {
    observedGeneration: 1,
    desiredNumberScheduled: 4,
    currentNumberScheduled: 4,
    updatedNumberScheduled: 4,
    numberAvailable: 4,
    numberReady: 4,
  };
  const set = (
    status: object,
    metadata: Record<string, unknown> = { generation: 1 },
  ) =>
    verdict("apps/v1", "DaemonSet", {
      metadata,
      status: { ...done, ...status },
    });
  assert.equal(set({}), "Current");
  assert.equal(set({}, {}), "InProgress NoGeneration");
  assert.equal(
    set({ observedGeneration: undefined }),
    "InProgress NoObservedGeneration",
  );
  assert.equal(
    set({ desiredNumberScheduled: undefined }),
    "InProgress NoDesiredNumber",
  );
  assert.equal(
    set({ observedGeneration: 2 }),
    "InProgress LatestGenerationNotObserved",
  );
  assert.equal(set({ currentNumberScheduled: 3 }), "InProgress LessCurrent");
  assert.equal(set({ updatedNumberScheduled: 3 }), "InProgress LessUpdated");
  assert.equal(set({ numberAvailable: 3 }), "InProgress LessAvailable");
  assert.equal(set({ numberReady: 3 }), "InProgress LessReady");
});

test("statusOf follows a ReplicaSet", () => {
  const done = {
    replicas: 1,
    fullyLabeledReplicas: 1,
    availableReplicas: 1,
    readyReplicas: 1,
  };
  const set = (status: object) =>
    verdict("apps/v1", "ReplicaSet", { status: { ...done, ...status } });
  assert.equal(set({}), "Current");
  assert.equal(set({ fullyLabeledReplicas: 0 }), "InProgress LessLabelled");
  assert.equal(set({ availableReplicas: 0 }), "InProgress LessAvailable");
  assert.equal(set({ readyReplicas: 0 }), "InProgress LessReady");
  assert.equal(set({ replicas: 2 }), "InProgress ExtraPods");
  assert.equal(
    set({ conditions: [condition("ReplicaFailure", "True")] }),
    "InProgress ReplicaFailure",
  );
});

test("statusOf follows a Pod to its end, and gives the scheduler 15 seconds [K6]", () => {
  const pod = (status: object, creationTimestamp = "2026-01-01T00:00:50Z") =>
    verdict("v1", "Pod", { metadata: { creationTimestamp }, status });
  assert.equal(
    pod({ phase: "Running", conditions: [condition("Ready", "True")] }),
    "Current",
  );
  assert.equal(pod({ phase: "Succeeded" }), "Current");
  assert.equal(pod({ phase: "Failed" }), "Current");
  assert.equal(pod({ phase: "Running" }), "InProgress PodRunningNotReady");
  assert.equal(
    pod({
      phase: "Running",
      containerStatuses: [
        { name: "a", state: { waiting: { reason: "CrashLoopBackOff" } } },
        { name: "b", state: {} },
      ],
    }),
    "Failed ContainerCrashLooping",
  );
  const unschedulable = {
    phase: "Pending",
    conditions: [condition("PodScheduled", "False", "Unschedulable")],
  };
  assert.equal(pod(unschedulable), "InProgress PodNotScheduled");
  assert.equal(
    pod(unschedulable, "2026-01-01T00:00:45Z"),
    "Failed PodUnschedulable",
  );
  assert.equal(pod({ phase: "Pending" }), "InProgress PodPending");
  assert.equal(pod({}), "InProgress PodNotObserved");
  assert.equal(pod({ phase: "Odd" }), "Unknown PodPhaseUnknown");
});

test("statusOf calls a running Job current, and its completion rule does not [K7]", () => {
  const parts = (status: object, spec: object = {}): Parts => ({
    spec,
    status,
  });
  const job = (...args: Parameters<typeof parts>) =>
    verdict("batch/v1", "Job", parts(...args));
  const completion = (...args: Parameters<typeof parts>) =>
    jobCompletionStatus(parts(...args), { now: NOW }).status;
  const running = { startTime: "2026-01-01T00:00:00Z" };
  assert.equal(job({}), "InProgress JobNotStarted");
  assert.equal(job(running), "Current");
  assert.equal(completion(running), "InProgress");
  const complete = { ...running, conditions: [condition("Complete", "True")] };
  assert.equal(job(complete), "Current");
  assert.equal(completion(complete), "Current");
  const failed = { conditions: [condition("Failed", "True")] };
  assert.equal(job(failed), "Failed JobFailed");
  const suspended = { conditions: [condition("Suspended", "True")] };
  assert.equal(job(suspended), "InProgress JobNotStarted");
  assert.equal(job(suspended, { suspend: true }), "Current");
  assert.equal(job({}, { suspend: true }), "InProgress JobNotStarted");
  assert.equal(completion({}, { suspend: true }), "Current");
});

test("statusOf knows Services, claims and disruption budgets [K8]", () => {
  const service = (spec: object) => verdict("v1", "Service", { spec });
  assert.equal(service({ type: "LoadBalancer" }), "InProgress NoIPAssigned");
  assert.equal(
    service({ type: "LoadBalancer", clusterIP: "10.0.0.1" }),
    "Current",
  );
  assert.equal(service({ type: "ClusterIP" }), "Current");
  const claim = (phase?: string) =>
    verdict("v1", "PersistentVolumeClaim", { status: { phase } });
  assert.equal(claim(), "InProgress NotBound");
  assert.equal(claim("Bound"), "Current");
  assert.equal(
    verdict("policy/v1", "PodDisruptionBudget", {
      metadata: { generation: 1 },
      status: { observedGeneration: 1 },
    }),
    "Current",
  );
});

test("statusOf follows a CustomResourceDefinition to its establishment [K9]", () => {
  const crd = (...conditions: object[]) =>
    verdict("apiextensions.k8s.io/v1", "CustomResourceDefinition", {
      status: { conditions },
    });
  assert.equal(crd(), "InProgress Installing");
  assert.equal(
    crd(condition("NamesAccepted", "False", "ListKindConflict")),
    "Failed ListKindConflict",
  );
  assert.equal(
    crd(condition("Established", "False", "Installing")),
    "InProgress Installing",
  );
  assert.equal(
    crd(condition("Established", "False", "NotAccepted")),
    "Failed NotAccepted",
  );
  assert.equal(
    crd(condition("Established", "Unknown", "NotAccepted")),
    "InProgress Installing",
  );
  assert.equal(
    crd(condition("NamesAccepted", "True"), condition("Established", "True")),
    "Current",
  );
});

test("aggregateStatus lets Failed and then Unknown win [K10]", () => {
  assert.equal(aggregateStatus([]), "Current");
  assert.equal(aggregateStatus(["Current", "Failed", "Unknown"]), "Failed");
  assert.equal(
    aggregateStatus(["Current", "Unknown", "InProgress"]),
    "Unknown",
  );
  assert.equal(aggregateStatus(["Current", "Current"]), "Current");
  assert.equal(aggregateStatus(["Current", "Terminating"]), "InProgress");
  assert.equal(aggregateStatus(["NotFound"], "NotFound"), "NotFound");
});

test("statusOf lets rules of the caller go first", () => {
  const object: KubernetesObject = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "x" },
  };
  const rules = new Map([
    [
      "/Pod",
      () => ({ status: "Current", reason: "", message: "mine" }) as const,
    ],
  ]);
  assert.equal(statusOf(object, { rules }).message, "mine");
});

test("statusOf and lintStatus name an object that was not found", () => {
  for (const judge of [statusOf, augmentStatus, lintStatus]) {
    assert.throws(() => judge(undefined as never), {
      name: "TypeError",
      message: /: "object" must be an object: received nothing$/,
    });
  }
});

function messageOf(apiVersion: string, kind: string, parts: Parts): string {
  const object = { apiVersion, kind, metadata: { name: "x" }, ...parts };
  return statusOf(object as unknown as KubernetesObject, { now: NOW }).message;
}

test("statusOf goes by the status of a condition, not by its presence", () => {
  const status = (...conditions: object[]) => ({ status: { conditions } });
  const crd = "CustomResourceDefinition";
  assert.equal(
    verdict(
      "apiextensions.k8s.io/v1",
      crd,
      status(condition("NamesAccepted", "Unknown")),
    ),
    "InProgress Installing",
  );
  const sound = { replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1 };
  assert.equal(
    verdict("apps/v1", "ReplicaSet", {
      status: {
        ...sound,
        availableReplicas: 1,
        conditions: [condition("ReplicaFailure", "False")],
      },
    }),
    "Current",
  );
  for (const type of ["Reconciling", "Stalled"]) {
    assert.equal(gadget(status(condition(type, "False"))), "Current");
  }
});

test("statusOf takes a Deployment for rolled out only if it is reported", () => {
  const deployment = (status: object, progressDeadlineSeconds?: number) =>
    verdict("apps/v1", "Deployment", {
      spec: { replicas: 2, progressDeadlineSeconds },
      status: { ...rolledOut, ...status },
    });
  const available = condition("Available", "True");
  const unfinished = {
    conditions: [
      condition("Progressing", "False", "NewReplicaSetAvailable"),
      available,
    ],
  };
  assert.equal(
    deployment(unfinished, 600),
    "InProgress ReplicaSetNotAvailable",
  );
  // The greatest number stands for no deadline.
  assert.equal(deployment({ conditions: [available] }, 2 ** 31 - 1), "Current");
  // What is ready but not updated is not available in the new form.
  assert.equal(
    messageOf("apps/v1", "Deployment", {
      spec: { replicas: 2 },
      status: { ...rolledOut, replicas: 5 },
    }),
    "Pending termination: 3",
  );
});

test("statusOf names all containers that crash, also those of the start", () => {
  const crashing = (name: string) => ({
    name,
    state: { waiting: { reason: "CrashLoopBackOff" } },
  });
  assert.equal(
    messageOf("v1", "Pod", {
      status: {
        phase: "Running",
        containerStatuses: [crashing("a"), crashing("b")],
        initContainerStatuses: [crashing("c")],
      },
    }),
    "Containers in CrashLoop state: a,b,c",
  );
});

test("the completion rule keeps the failure of a Job", () => {
  const status = { conditions: [condition("Failed", "True")] };
  assert.equal(
    jobCompletionStatus({ status }, { now: NOW }).reason,
    "JobFailed",
  );
});

test("statusOf follows the kinds of the old group extensions", () => {
  for (const kind of ["Deployment", "ReplicaSet", "DaemonSet"]) {
    assert.match(verdict("extensions/v1beta1", kind, {}), /^InProgress /);
  }
});

test("statusOf prefers a rule for a kind, and does not ask Stalled before it", () => {
  const saying = (message: string) => () =>
    ({ status: "Current", reason: message, message }) as const;
  const object = {
    apiVersion: "example.com/v1",
    kind: "Gadget",
    metadata: { name: "x" },
    status: { conditions: [condition("Stalled", "True")] },
  };
  const rules = new Map([
    ["example.com/*", saying("group")],
    ["example.com/Gadget", saying("kind")],
  ]);
  assert.equal(statusOf(object, { rules }).message, "kind");
  rules.delete("example.com/Gadget");
  assert.equal(statusOf(object, { rules }).message, "group");
});

test("statusOf goes by the conditions that decide, and by their reason", () => {
  const crd = (...conditions: object[]) =>
    verdict("apiextensions.k8s.io/v1", "CustomResourceDefinition", {
      status: { conditions },
    });
  assert.equal(
    crd(
      condition("NonStructuralSchema", "False"),
      condition("Established", "True"),
    ),
    "Current",
  );
  assert.equal(
    verdict("v1", "Pod", {
      metadata: { creationTimestamp: "2026-01-01T00:00:00Z" },
      status: {
        phase: "Pending",
        conditions: [condition("PodScheduled", "False", "SchedulingGated")],
      },
    }),
    "InProgress PodPending",
  );
  const failure = condition("ReplicaFailure", "True");
  const { message } = statusOf({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: "x" },
    status: { conditions: [failure] },
  } as KubernetesObject);
  assert.equal(message, "ReplicaFailure message");
});
