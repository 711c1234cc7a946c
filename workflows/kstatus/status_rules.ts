/** Status of an object, and its reason, in the terms of kstatus. */
export interface ObjectStatus {
  /** State of the object; `Unknown` where its fields do not tell it. */
  readonly status:
    | "InProgress"
    | "Failed"
    | "Current"
    | "Terminating"
    | "NotFound"
    | "Unknown";
  /** Machine-readable reason; empty if the object is Current. */
  readonly reason: string;
  /** Human-readable message. */
  readonly message: string;
}

export function currentStatus(message: string): ObjectStatus {
  return { status: "Current", reason: "", message };
}

export function inProgressStatus(
  reason: string,
  message: string,
): ObjectStatus {
  return { status: "InProgress", reason, message };
}

export function failedStatus(reason: string, message: string): ObjectStatus {
  return { status: "Failed", reason, message };
}

/** Rule that computes the status of the objects of a kind. */
export type StatusRule = (
  object: unknown,
  context: {
    /** Current time in milliseconds since the Unix epoch. */
    readonly now: number;
  },
) => ObjectStatus;

/** Returns the value at a path; undefined if it does not exist. */
export function at(object: unknown, path: string): unknown {
  let value = object;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    if (!Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

/** Returns the number at a path, or the given default. */
function numberAt(object: unknown, path: string, otherwise: number): number {
  const value = at(object, path);
  return typeof value === "number" ? value : otherwise;
}

/** Returns the string at a path; empty if absent. */
function textAt(object: unknown, path: string): string {
  const value = at(object, path);
  return typeof value === "string" ? value : "";
}

/** Returns the list at a path; empty if absent. */
function listAt(object: unknown, path: string): readonly unknown[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

/** Condition of an object, with empty strings for missing fields. */
interface ReadCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** Reads the conditions of an object, in their order. */
export function conditionsAt(object: unknown): readonly ReadCondition[] {
  return listAt(object, "status.conditions").map((condition) => ({
    type: textAt(condition, "type"),
    status: textAt(condition, "status"),
    reason: textAt(condition, "reason"),
    message: textAt(condition, "message"),
  }));
}

/** Rule for kinds that are Current as soon as they exist. */
const alwaysCurrent: StatusRule = () => currentStatus("Resource is current");

/** Rule for Services: a load balancer needs an address. */
const serviceStatus: StatusRule = (object) =>
  textAt(object, "spec.type") === "LoadBalancer" &&
    textAt(object, "spec.clusterIP") === ""
    ? inProgressStatus(
      "NoIPAssigned",
      "ClusterIP not set. Service type: LoadBalancer",
    )
    : currentStatus("Service is ready");

/** Rule for PersistentVolumeClaims: bound. */
const claimStatus: StatusRule = (object) => {
  const phase = textAt(object, "status.phase");
  return phase === "Bound" ? currentStatus("PVC is Bound") : inProgressStatus(
    "NotBound",
    `PVC is not Bound. phase: ${phase || "unknown"}`,
  );
};

/** Rule for CustomResourceDefinitions: accepted and established. */
const crdStatus: StatusRule = (object) => {
  for (const { type, status, reason, message } of conditionsAt(object)) {
    if (type === "NamesAccepted" && status === "False") {
      return failedStatus(reason, message);
    }
    if (type !== "Established") continue;
    if (status === "True") return currentStatus("CRD is established");
    if (status === "False" && reason !== "Installing") {
      return failedStatus(reason, message);
    }
  }
  return inProgressStatus("Installing", "Install in progress");
};

/** Age at which an unscheduled Pod counts as failed; the same as in kstatus. */
const SCHEDULING_GRACE_MS = 15_000;

/** Time left until an unscheduled Pod counts as failed, in milliseconds. */
export function graceLeft(pod: unknown, now: number): number {
  const created = Date.parse(textAt(pod, "metadata.creationTimestamp"));
  return Number.isNaN(created)
    ? 0
    : Math.max(created + SCHEDULING_GRACE_MS - now, 0);
}

/** Rule for Pods: running and ready, or completed. */
const podStatus: StatusRule = (object, { now }) => {
  const phase = textAt(object, "status.phase");
  switch (phase) {
    case "Succeeded":
      return currentStatus("Pod has completed successfully");
    case "Failed":
      return currentStatus("Pod has completed, but not successfully");
    case "Running":
      return runningPod(object);
    case "Pending":
      return pendingPod(object, now);
    case "":
      return inProgressStatus("PodNotObserved", "Pod phase not available");
    default:
      return {
        status: "Unknown",
        reason: "PodPhaseUnknown",
        message: `Pod has an unknown phase: ${phase}`,
      };
  }
};

function runningPod(object: unknown): ObjectStatus {
  if (find(object, "Ready")?.status === "True") {
    return currentStatus("Pod is Ready");
  }
  const crashing = ["containerStatuses", "initContainerStatuses"]
    .flatMap((list) => listAt(object, `status.${list}`))
    .filter((container) =>
      textAt(container, "state.waiting.reason") === "CrashLoopBackOff"
    )
    .map((container) => textAt(container, "name"));
  return crashing.length > 0
    ? failedStatus(
      "ContainerCrashLooping",
      `Containers in CrashLoop state: ${crashing.join(",")}`,
    )
    : inProgressStatus("PodRunningNotReady", "Pod is running but is not Ready");
}

function pendingPod(object: unknown, now: number): ObjectStatus {
  const scheduled = find(object, "PodScheduled");
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") {
    return inProgressStatus("PodPending", "Pod is in the Pending phase");
  }
  return graceLeft(object, now) > 0
    ? inProgressStatus("PodNotScheduled", "Pod has not been scheduled")
    : failedStatus("PodUnschedulable", "Pod could not be scheduled");
}

/** Step of a rollout: whether it is incomplete, and the reason and message. */
type Progress = readonly [behind: boolean, reason: string, message: string];

/** Status of the first incomplete step; otherwise Current with the message. */
function progressOf(steps: readonly Progress[], done: string): ObjectStatus {
  const behind = steps.find(([isBehind]) => isBehind);
  return behind === undefined
    ? currentStatus(done)
    : inProgressStatus(behind[1], behind[2]);
}

/** Step that is incomplete while a number is below the wanted one. */
function atLeast(
  wanted: number,
  count: number,
  reason: string,
  label: string,
): Progress {
  return [wanted > count, reason, `${label}: ${count}/${wanted}`];
}

/** Step that is incomplete while there are more pods than wanted. */
function atMost(wanted: number, count: number): Progress {
  const message = `Pending termination: ${count - wanted}`;
  return [count > wanted, "ExtraPods", message];
}

/** Step that is incomplete while a field is missing. */
function present(object: unknown, path: string, reason: string): Progress {
  return [at(object, path) === undefined, reason, `Missing .${path}`];
}

/** Numbers in the status of an object; zero if absent. */
function countsOf(object: unknown): (name: string) => number {
  return (name) => numberAt(object, `status.${name}`, 0);
}

function find(object: unknown, type: string): ReadCondition | undefined {
  return conditionsAt(object).find((condition) => condition.type === type);
}

/** Value of the progress deadline that means no deadline. */
const NO_DEADLINE = 2 ** 31 - 1;

/** Rule for Deployments: rolled out, available, and without old replicas. */
const deploymentStatus: StatusRule = (object) => {
  const progressing = find(object, "Progressing");
  if (progressing?.reason === "ProgressDeadlineExceeded") {
    return failedStatus(progressing.reason, "Progress deadline exceeded");
  }
  const deadline = at(object, "spec.progressDeadlineSeconds");
  const rolledOut = deadline === undefined || deadline === NO_DEADLINE ||
    (progressing?.status === "True" &&
      progressing.reason === "NewReplicaSetAvailable");
  const available = find(object, "Available")?.status === "True";
  const wanted = numberAt(object, "spec.replicas", 1);
  const count = countsOf(object);
  const replicas = count("replicas");
  const updated = count("updatedReplicas");
  return progressOf([
    atLeast(wanted, replicas, "LessReplicas", "replicas"),
    atLeast(wanted, updated, "LessUpdated", "Updated"),
    atMost(wanted, replicas),
    atLeast(updated, count("availableReplicas"), "LessAvailable", "Available"),
    atLeast(wanted, count("readyReplicas"), "LessReady", "Ready"),
    [!rolledOut, "ReplicaSetNotAvailable", "ReplicaSet not available"],
    [!available, "DeploymentNotAvailable", "Deployment not available"],
  ], `Deployment is available. Replicas: ${replicas}`);
};

/** Rule for StatefulSets: every replica ready and of the newest revision. */
const statefulSetStatus: StatusRule = (object) => {
  if (textAt(object, "spec.updateStrategy.type") === "OnDelete") {
    return currentStatus("StatefulSet is using the ondelete update strategy");
  }
  const wanted = numberAt(object, "spec.replicas", 1);
  const count = countsOf(object);
  const replicas = count("replicas");
  const steps = [
    atLeast(wanted, replicas, "LessReplicas", "Replicas"),
    atLeast(wanted, count("readyReplicas"), "LessReady", "Ready"),
    atMost(wanted, replicas),
  ];
  const path = "spec.updateStrategy.rollingUpdate.partition";
  const partition = numberAt(object, path, 0);
  if (partition > 0) {
    const updated = count("updatedReplicas");
    return progressOf(
      [
        ...steps,
        atLeast(wanted - partition, updated, "PartitionRollout", "updated"),
      ],
      `Partition rollout complete. updated: ${updated}`,
    );
  }
  return progressOf([
    ...steps,
    atLeast(wanted, count("currentReplicas"), "LessCurrent", "current"),
    [
      textAt(object, "status.currentRevision") !==
        textAt(object, "status.updateRevision"),
      "RevisionMismatch",
      "Waiting for updated revision to match current",
    ],
  ], `All replicas scheduled as expected. Replicas: ${replicas}`);
};

/** Rule for ReplicaSets: every replica labelled, available and ready. */
const replicaSetStatus: StatusRule = (object) => {
  const failure = find(object, "ReplicaFailure");
  const wanted = numberAt(object, "spec.replicas", 1);
  const count = countsOf(object);
  const replicas = count("replicas");
  return progressOf([
    [
      failure?.status === "True",
      "ReplicaFailure",
      failure?.message || "Replica failure",
    ],
    atLeast(wanted, count("fullyLabeledReplicas"), "LessLabelled", "Labelled"),
    atLeast(wanted, count("availableReplicas"), "LessAvailable", "Available"),
    atLeast(wanted, count("readyReplicas"), "LessReady", "Ready"),
    atMost(wanted, replicas),
  ], `ReplicaSet is available. Replicas: ${replicas}`);
};

/** Rule for DaemonSets: an updated pod ready on every scheduled node. */
const daemonSetStatus: StatusRule = (object) => {
  const count = countsOf(object);
  const wanted = count("desiredNumberScheduled");
  return progressOf([
    present(object, "metadata.generation", "NoGeneration"),
    present(object, "status.observedGeneration", "NoObservedGeneration"),
    present(object, "status.desiredNumberScheduled", "NoDesiredNumber"),
    atLeast(wanted, count("currentNumberScheduled"), "LessCurrent", "Current"),
    atLeast(wanted, count("updatedNumberScheduled"), "LessUpdated", "Updated"),
    atLeast(wanted, count("numberAvailable"), "LessAvailable", "Available"),
    atLeast(wanted, count("numberReady"), "LessReady", "Ready"),
  ], `All replicas scheduled as expected. Replicas: ${wanted}`);
};

/** Rule for Jobs: ended, suspended or running. */
const jobStatus: StatusRule = (object) => {
  for (const { type, status, message } of conditionsAt(object)) {
    if (status !== "True") continue;
    if (type === "Complete") return currentStatus(`Job Completed. ${message}`);
    if (type === "Failed") {
      return failedStatus("JobFailed", `Job Failed. ${message}`);
    }
    if (type === "Suspended" && at(object, "spec.suspend") === true) {
      return currentStatus("Job Suspended");
    }
  }
  return at(object, "status.startTime") === undefined
    ? inProgressStatus("JobNotStarted", "Job not started")
    : currentStatus("Job in progress");
};

/**
 * Rule for Jobs while waiting for their end: ended or suspended, but not
 * running.
 */
export function jobCompletionStatus(
  ...[object, context]: Parameters<StatusRule>
): ReturnType<StatusRule> {
  if (at(object, "spec.suspend") === true) {
    return currentStatus("Job Suspended");
  }
  const status = jobStatus(object, context);
  const complete = find(object, "Complete")?.status === "True";
  return status.status === "Current" && !complete
    ? inProgressStatus("JobInProgress", "Job in progress")
    : status;
}

/**
 * Rules for waiting: Jobs are Current when they have ended, not while they run.
 */
export const WAITING_RULES: ReadonlyMap<string, StatusRule> = new Map([
  ["batch/Job", jobCompletionStatus],
]);

/** Rules by group and kind, for all versions. */
export const KIND_RULES: ReadonlyMap<string, StatusRule> = new Map([
  ["/ConfigMap", alwaysCurrent],
  ["/Secret", alwaysCurrent],
  ["/Service", serviceStatus],
  ["/PersistentVolumeClaim", claimStatus],
  ["/Pod", podStatus],
  ["batch/CronJob", alwaysCurrent],
  ["batch/Job", jobStatus],
  ["policy/PodDisruptionBudget", alwaysCurrent],
  ["apps/Deployment", deploymentStatus],
  ["apps/StatefulSet", statefulSetStatus],
  ["apps/ReplicaSet", replicaSetStatus],
  ["apps/DaemonSet", daemonSetStatus],
  ["extensions/Deployment", deploymentStatus],
  ["extensions/ReplicaSet", replicaSetStatus],
  ["extensions/DaemonSet", daemonSetStatus],
  ["apiextensions.k8s.io/CustomResourceDefinition", crdStatus],
]);
