import { conditionsAt, listAt, textAt } from "./fields.ts";
import {
  current,
  failed,
  inProgress,
  type ObjectStatus,
  type StatusRule,
} from "./object_status.ts";

/** For kinds that are what they ask for as soon as they exist. */
export const alwaysCurrent: StatusRule = () => current("Resource is current");

/** Services: a load balancer needs an address. */
export const serviceStatus: StatusRule = (object) =>
  textAt(object, "spec.type") === "LoadBalancer" &&
    textAt(object, "spec.clusterIP") === ""
    ? inProgress(
      "NoIPAssigned",
      "ClusterIP not set. Service type: LoadBalancer",
    )
    : current("Service is ready");

/** PersistentVolumeClaims: bound. */
export const claimStatus: StatusRule = (object) => {
  const phase = textAt(object, "status.phase");
  return phase === "Bound"
    ? current("PVC is Bound")
    : inProgress("NotBound", `PVC is not Bound. phase: ${phase || "unknown"}`);
};

/** CustomResourceDefinitions: accepted and served. */
export const crdStatus: StatusRule = (object) => {
  for (const { type, status, reason, message } of conditionsAt(object)) {
    if (type === "NamesAccepted" && status === "False") {
      return failed(reason, message);
    }
    if (type !== "Established") continue;
    if (status === "True") return current("CRD is established");
    if (status === "False" && reason !== "Installing") {
      return failed(reason, message);
    }
  }
  return inProgress("Installing", "Install in progress");
};

/**
 * How long a Pod may go unscheduled before that counts as a failure, in
 * milliseconds: as in kstatus.
 */
const SCHEDULING_GRACE = 15_000;

/**
 * How long until a Pod that is not scheduled counts as failed, in milliseconds.
 *
 * @param pod The Pod.
 * @param now The present, in milliseconds since the Unix epoch.
 */
export function graceLeft(pod: unknown, now: number): number {
  const created = Date.parse(textAt(pod, "metadata.creationTimestamp"));
  return Number.isNaN(created)
    ? 0
    : Math.max(created + SCHEDULING_GRACE - now, 0);
}

/** Pods: running and ready, or at their end. */
export const podStatus: StatusRule = (object, { now }) => {
  const phase = textAt(object, "status.phase");
  switch (phase) {
    case "Succeeded":
      return current("Pod has completed successfully");
    case "Failed":
      return current("Pod has completed, but not successfully");
    case "Running":
      return runningPod(object);
    case "Pending":
      return pendingPod(object, now);
    case "":
      return inProgress("PodNotObserved", "Pod phase not available");
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
  if (ready?.status === "True") return current("Pod is Ready");
  const crashing = ["containerStatuses", "initContainerStatuses"]
    .flatMap((list) => listAt(object, `status.${list}`))
    .filter((container) =>
      textAt(container, "state.waiting.reason") === "CrashLoopBackOff"
    )
    .map((container) => textAt(container, "name"));
  return crashing.length > 0
    ? failed(
      "ContainerCrashLooping",
      `Containers in CrashLoop state: ${crashing.join(",")}`,
    )
    : inProgress("PodRunningNotReady", "Pod is running but is not Ready");
}

function pendingPod(object: unknown, now: number): ObjectStatus {
  const unscheduled = conditionsAt(object).find((condition) =>
    condition.type === "PodScheduled" && condition.status === "False" &&
    condition.reason === "Unschedulable"
  );
  if (unscheduled === undefined) {
    return inProgress("PodPending", "Pod is in the Pending phase");
  }
  return graceLeft(object, now) > 0
    ? inProgress("PodNotScheduled", "Pod has not been scheduled")
    : failed("PodUnschedulable", "Pod could not be scheduled");
}
