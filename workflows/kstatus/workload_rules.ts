import {
  at,
  conditionsAt,
  numberAt,
  type ReadCondition,
  textAt,
} from "./fields.ts";
import {
  current,
  failed,
  inProgress,
  type ObjectStatus,
  type StatusRule,
} from "./object_status.ts";

/** One step on the way: what is there against what should be. */
type Progress = readonly [behind: boolean, reason: string, message: string];

/** The first step that is not done yet. */
function firstBehind(steps: readonly Progress[]): ObjectStatus | undefined {
  for (const [behind, reason, message] of steps) {
    if (behind) return inProgress(reason, message);
  }
  return undefined;
}

function find(object: unknown, type: string): ReadCondition | undefined {
  return conditionsAt(object).find((condition) => condition.type === type);
}

/** What a controller that knows no deadline writes. */
const NO_DEADLINE = 2 ** 31 - 1;

/** Deployments: rolled out, available, and nothing of old left. */
export const deploymentStatus: StatusRule = (object) => {
  const progressing = find(object, "Progressing");
  if (progressing?.reason === "ProgressDeadlineExceeded") {
    return failed("ProgressDeadlineExceeded", "Progress deadline exceeded");
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
  ]) ?? current(`Deployment is available. Replicas: ${replicas}`);
};

/** StatefulSets: every replica ready and of the newest revision. */
export const statefulSetStatus: StatusRule = (object) => {
  if (textAt(object, "spec.updateStrategy.type") === "OnDelete") {
    return current("StatefulSet is using the ondelete update strategy");
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
      ? inProgress(
        "PartitionRollout",
        `updated: ${updated}/${wanted - partition}`,
      )
      : current(`Partition rollout complete. updated: ${updated}`);
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
  ]) ?? current(`All replicas scheduled as expected. Replicas: ${replicas}`);
};

/** ReplicaSets: every replica labelled, available and ready. */
export const replicaSetStatus: StatusRule = (object) => {
  const failure = find(object, "ReplicaFailure");
  if (failure?.status === "True") {
    return inProgress("ReplicaFailure", failure.message || "Replica failure");
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
  ]) ?? current(`ReplicaSet is available. Replicas: ${replicas}`);
};

/** DaemonSets: the newest pod ready on every node that should run one. */
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
  ]) ?? current(`All replicas scheduled as expected. Replicas: ${wanted}`);
};

/** Jobs: done, or at least at work. */
export const jobStatus: StatusRule = (object) => {
  for (const { type, status, message } of conditionsAt(object)) {
    if (status !== "True") continue;
    if (type === "Complete") return current(`Job Completed. ${message}`);
    if (type === "Failed") {
      return failed("JobFailed", `Job Failed. ${message}`);
    }
    if (type === "Suspended" && at(object, "spec.suspend") === true) {
      return current("Job Suspended");
    }
  }
  return at(object, "status.startTime") === undefined
    ? inProgress("JobNotStarted", "Job not started")
    : current("Job in progress");
};

/**
 * Jobs as who waits for their end sees them: suspended is as good as done, at
 * work is not.
 */
export function jobCompletionStatus(
  ...[object, context]: Parameters<StatusRule>
): ReturnType<StatusRule> {
  if (at(object, "spec.suspend") === true) return current("Job Suspended");
  const status = jobStatus(object, context);
  const complete = find(object, "Complete")?.status === "True";
  return status.status === "Current" && !complete
    ? inProgress("JobInProgress", "Job in progress")
    : status;
}
