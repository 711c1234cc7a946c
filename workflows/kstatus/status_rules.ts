import {
  currentStatus,
  failedStatus,
  inProgressStatus,
  type ObjectStatus,
  type StatusRule,
} from "./object_status.ts";

/**
 * Returns the value at a path; undefined if it does not exist.
 *
 * @param object The start of the path.
 * @param path Field names, separated by dots.
 */
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
export function numberAt(
  object: unknown,
  path: string,
  otherwise: number,
): number {
  const value = at(object, path);
  return typeof value === "number" ? value : otherwise;
}

/** Returns the string at a path; empty if absent. */
export function textAt(object: unknown, path: string): string {
  const value = at(object, path);
  return typeof value === "string" ? value : "";
}

/** Returns the list at a path; empty if absent. */
export function listAt(object: unknown, path: string): readonly unknown[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

/** Condition of an object, with empty strings for missing fields. */
export interface ReadCondition {
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
export const alwaysCurrent: StatusRule = () =>
  currentStatus("Resource is current");

/** Rule for Services: a load balancer needs an address. */
export const serviceStatus: StatusRule = (object) =>
  textAt(object, "spec.type") === "LoadBalancer" &&
    textAt(object, "spec.clusterIP") === ""
    ? inProgressStatus(
      "NoIPAssigned",
      "ClusterIP not set. Service type: LoadBalancer",
    )
    : currentStatus("Service is ready");

/** Rule for PersistentVolumeClaims: bound. */
export const claimStatus: StatusRule = (object) => {
  const phase = textAt(object, "status.phase");
  return phase === "Bound" ? currentStatus("PVC is Bound") : inProgressStatus(
    "NotBound",
    `PVC is not Bound. phase: ${phase || "unknown"}`,
  );
};

/** Rule for CustomResourceDefinitions: accepted and established. */
export const crdStatus: StatusRule = (object) => {
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

/**
 * Time after which an unscheduled Pod counts as failed, in milliseconds; as in
 * kstatus.
 */
const SCHEDULING_GRACE_MS = 15_000;

/**
 * Time until an unscheduled Pod counts as failed, in milliseconds.
 *
 * @param pod The Pod.
 * @param now The time in milliseconds since the Unix epoch.
 */
export function graceLeft(pod: unknown, now: number): number {
  const created = Date.parse(textAt(pod, "metadata.creationTimestamp"));
  return Number.isNaN(created)
    ? 0
    : Math.max(created + SCHEDULING_GRACE_MS - now, 0);
}

/** Rule for Pods: running and ready, or completed. */
export const podStatus: StatusRule = (object, { now }) => {
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
  const ready = conditionsAt(object).find(({ type }) => type === "Ready");
  if (ready?.status === "True") return currentStatus("Pod is Ready");
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
  const unscheduled = conditionsAt(object).find((condition) =>
    condition.type === "PodScheduled" && condition.status === "False" &&
    condition.reason === "Unschedulable"
  );
  if (unscheduled === undefined) {
    return inProgressStatus("PodPending", "Pod is in the Pending phase");
  }
  return graceLeft(object, now) > 0
    ? inProgressStatus("PodNotScheduled", "Pod has not been scheduled")
    : failedStatus("PodUnschedulable", "Pod could not be scheduled");
}

/** Step of a rollout: whether it is incomplete, and the reason and message. */
type Progress = readonly [behind: boolean, reason: string, message: string];

/** Status of the first incomplete step. */
function firstBehind(steps: readonly Progress[]): ObjectStatus | undefined {
  for (const [behind, reason, message] of steps) {
    if (behind) return inProgressStatus(reason, message);
  }
  return undefined;
}

function find(object: unknown, type: string): ReadCondition | undefined {
  return conditionsAt(object).find((condition) => condition.type === type);
}

/** Progress deadline that means none. */
const NO_DEADLINE = 2 ** 31 - 1;

/** Rule for Deployments: rolled out, available, and without old replicas. */
export const deploymentStatus: StatusRule = (object) => {
  const progressing = find(object, "Progressing");
  if (progressing?.reason === "ProgressDeadlineExceeded") {
    return failedStatus(
      "ProgressDeadlineExceeded",
      "Progress deadline exceeded",
    );
  }
  const deadline = at(object, "spec.progressDeadlineSeconds");
  const rolledOut = deadline === undefined || deadline === NO_DEADLINE ||
    (progressing?.status === "True" &&
      progressing.reason === "NewReplicaSetAvailable");
  const wanted = numberAt(object, "spec.replicas", 1);
  const status = (name: string) => numberAt(object, `status.${name}`, 0);
  const replicas = status("replicas");
  const updated = status("updatedReplicas");
  const available = status("availableReplicas");
  const ready = status("readyReplicas");
  return firstBehind([
    [wanted > replicas, "LessReplicas", `replicas: ${replicas}/${wanted}`],
    [wanted > updated, "LessUpdated", `Updated: ${updated}/${wanted}`],
    [
      replicas > wanted,
      "ExtraPods",
      `Pending termination: ${replicas - wanted}`,
    ],
    [
      updated > available,
      "LessAvailable",
      `Available: ${available}/${updated}`,
    ],
    [wanted > ready, "LessReady", `Ready: ${ready}/${wanted}`],
    [!rolledOut, "ReplicaSetNotAvailable", "ReplicaSet not available"],
    [
      find(object, "Available")?.status !== "True",
      "DeploymentNotAvailable",
      "Deployment not available",
    ],
  ]) ?? currentStatus(`Deployment is available. Replicas: ${replicas}`);
};

/** Rule for StatefulSets: every replica ready and of the newest revision. */
export const statefulSetStatus: StatusRule = (object) => {
  if (textAt(object, "spec.updateStrategy.type") === "OnDelete") {
    return currentStatus("StatefulSet is using the ondelete update strategy");
  }
  const wanted = numberAt(object, "spec.replicas", 1);
  const status = (name: string) => numberAt(object, `status.${name}`, 0);
  const replicas = status("replicas");
  const ready = status("readyReplicas");
  const behind = firstBehind([
    [wanted > replicas, "LessReplicas", `Replicas: ${replicas}/${wanted}`],
    [wanted > ready, "LessReady", `Ready: ${ready}/${wanted}`],
    [
      replicas > wanted,
      "ExtraPods",
      `Pending termination: ${replicas - wanted}`,
    ],
  ]);
  if (behind !== undefined) return behind;
  const partition = at(object, "spec.updateStrategy.rollingUpdate.partition");
  if (typeof partition === "number" && partition > 0) {
    const updated = status("updatedReplicas");
    return updated < wanted - partition
      ? inProgressStatus(
        "PartitionRollout",
        `updated: ${updated}/${wanted - partition}`,
      )
      : currentStatus(`Partition rollout complete. updated: ${updated}`);
  }
  const currentReplicas = status("currentReplicas");
  const revision = textAt(object, "status.currentRevision");
  const update = textAt(object, "status.updateRevision");
  return firstBehind([
    [
      wanted > currentReplicas,
      "LessCurrent",
      `current: ${currentReplicas}/${wanted}`,
    ],
    [
      revision !== update,
      "RevisionMismatch",
      "Waiting for updated revision to match current",
    ],
  ]) ??
    currentStatus(`All replicas scheduled as expected. Replicas: ${replicas}`);
};

/** Rule for ReplicaSets: every replica labelled, available and ready. */
export const replicaSetStatus: StatusRule = (object) => {
  const failure = find(object, "ReplicaFailure");
  if (failure?.status === "True") {
    return inProgressStatus(
      "ReplicaFailure",
      failure.message || "Replica failure",
    );
  }
  const wanted = numberAt(object, "spec.replicas", 1);
  const status = (name: string) => numberAt(object, `status.${name}`, 0);
  const labelled = status("fullyLabeledReplicas");
  const available = status("availableReplicas");
  const ready = status("readyReplicas");
  const replicas = status("replicas");
  return firstBehind([
    [wanted > labelled, "LessLabelled", `Labelled: ${labelled}/${wanted}`],
    [wanted > available, "LessAvailable", `Available: ${available}/${wanted}`],
    [wanted > ready, "LessReady", `Ready: ${ready}/${wanted}`],
    [
      replicas > wanted,
      "ExtraPods",
      `Pending termination: ${replicas - wanted}`,
    ],
  ]) ?? currentStatus(`ReplicaSet is available. Replicas: ${replicas}`);
};

/** Rule for DaemonSets: an updated pod ready on every scheduled node. */
export const daemonSetStatus: StatusRule = (object) => {
  const behind = firstBehind([
    [
      at(object, "metadata.generation") === undefined,
      "NoGeneration",
      "Missing .metadata.generation",
    ],
    [
      at(object, "status.observedGeneration") === undefined,
      "NoObservedGeneration",
      "Missing .status.observedGeneration",
    ],
    [
      at(object, "status.desiredNumberScheduled") === undefined,
      "NoDesiredNumber",
      "Missing .status.desiredNumberScheduled",
    ],
  ]);
  if (behind !== undefined) return behind;
  const status = (name: string) => numberAt(object, `status.${name}`, 0);
  const wanted = status("desiredNumberScheduled");
  const scheduled = status("currentNumberScheduled");
  const updated = status("updatedNumberScheduled");
  const available = status("numberAvailable");
  const ready = status("numberReady");
  return firstBehind([
    [wanted > scheduled, "LessCurrent", `Current: ${scheduled}/${wanted}`],
    [wanted > updated, "LessUpdated", `Updated: ${updated}/${wanted}`],
    [wanted > available, "LessAvailable", `Available: ${available}/${wanted}`],
    [wanted > ready, "LessReady", `Ready: ${ready}/${wanted}`],
  ]) ??
    currentStatus(`All replicas scheduled as expected. Replicas: ${wanted}`);
};

/** Rule for Jobs: ended, suspended or running. */
export const jobStatus: StatusRule = (object) => {
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
