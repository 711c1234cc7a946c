import { parseApiVersion } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import {
  currentStatus,
  failedStatus,
  inProgressStatus,
  type ObjectStatus,
  type StatusRule,
} from "./object_status.ts";
import {
  alwaysCurrent,
  at,
  claimStatus,
  conditionsAt,
  crdStatus,
  daemonSetStatus,
  deploymentStatus,
  jobStatus,
  podStatus,
  replicaSetStatus,
  serviceStatus,
  statefulSetStatus,
} from "./status_rules.ts";
import {
  type Condition,
  type ConditionMoment,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "../conditions/condition.ts";

/** The rules by group and kind, in whatever version. */
const RULES: ReadonlyMap<string, StatusRule> = new Map([
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

const OPTION_RULES: OptionRules<
  NonNullable<Parameters<typeof statusOf>[1]>
> = {
  now: "number?",
  rules: "map?",
};

/**
 * In which state an object is: whether it has reached what it asks for, by the
 * rules of kstatus for the built-in kinds and by the conditions Reconciling,
 * Stalled and Ready for all others.
 *
 * @param object The object as the API server gave it; nothing is trusted.
 * @param options The moment, and rules of your own.
 * @throws {TypeError} If an option is unknown or of another type.
 *
 * @example A custom resource that is not ready
 * ```ts
 * import { statusOf } from "@coracle/operator/workflows";
 *
 * const status = statusOf({
 *   apiVersion: "example.com/v1",
 *   kind: "Gadget",
 *   metadata: { name: "one" },
 *   status: { conditions: [{ type: "Ready", status: "False", reason: "Busy" }] },
 * });
 * if (status.status !== "InProgress") throw new Error("Unexpected status");
 * ```
 */
export function statusOf(
  object: KubernetesObject & { readonly status?: unknown },
  options: {
    readonly now?: number | undefined;
    readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
  } = {},
): ObjectStatus {
  checkOptions(options, OPTION_RULES, "statusOf()");
  const { now = Date.now(), rules } = options;
  const { group } = parseApiVersion(object.apiVersion ?? "");
  const name = `${group}/${object.kind ?? ""}`;
  const own = rules?.get(name) ?? rules?.get(`${group}/*`);
  const general = unsettledStatus(object) ??
    (own === undefined ? toldStatus(object) : undefined);
  if (general !== undefined) return general;
  const rule = own ?? RULES.get(name);
  return rule === undefined ? readyStatus(object) : rule(object, { now });
}

/** What holds for every kind: a state that is no answer to the present wish. */
function unsettledStatus(object: unknown): ObjectStatus | undefined {
  if (at(object, "metadata.deletionTimestamp") !== undefined) {
    return {
      status: "Terminating",
      reason: "",
      message: "Resource scheduled for deletion",
    };
  }
  const generation = at(object, "metadata.generation");
  const observed = at(object, "status.observedGeneration");
  return typeof generation === "number" && typeof observed === "number" &&
      generation !== observed
    ? inProgressStatus(
      "LatestGenerationNotObserved",
      `Generation is ${generation}, but latest observed generation is ${observed}`,
    )
    : undefined;
}

/** What the object says itself, before the rule of its kind. */
function toldStatus(object: unknown): ObjectStatus | undefined {
  for (const { type, status, reason, message } of conditionsAt(object)) {
    if (status !== "True") continue;
    if (type === "Reconciling") return inProgressStatus(reason, message);
    if (type === "Stalled") return failedStatus(reason, message);
  }
  return undefined;
}

/** For kinds that nobody has a rule for. */
function readyStatus(object: unknown): ObjectStatus {
  const ready = conditionsAt(object).find(({ type }) => type === "Ready");
  if (ready?.status === "True") return currentStatus("Resource is Ready");
  return ready === undefined
    ? currentStatus("Resource is current")
    : inProgressStatus(ready.reason, ready.message);
}

/**
 * The state of many objects together: Failed and then Unknown win; otherwise
 * they are what they should be only if all are.
 *
 * @param statuses The state of each.
 * @param desired What all should be.
 */
export function aggregateStatus(
  statuses: readonly ObjectStatus["status"][],
  desired: ObjectStatus["status"] = "Current",
): ObjectStatus["status"] {
  if (statuses.includes("Failed")) return "Failed";
  if (statuses.includes("Unknown")) return "Unknown";
  return statuses.every((status) => status === desired)
    ? desired
    : "InProgress";
}

/**
 * Gives an object of any kind the conditions of kstatus that it does not write
 * itself: Reconciling while it is in progress, Stalled when it has failed, and
 * neither of both otherwise. Tools that only know conditions can then read every
 * object alike.
 *
 * @param object The object as the API server gave it; left as it is.
 * @param options The moment, and rules of your own.
 * @returns A copy with these conditions.
 * @throws {TypeError} If the options are none, or one is of another type.
 *
 * @example A Pod that nobody has seen yet
 * ```ts
 * import { augmentStatus } from "@coracle/operator/workflows";
 *
 * const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web" } };
 * const { status } = augmentStatus(pod, { now: 0 });
 * if (status.conditions[0]?.type !== "Reconciling") throw new Error("Unexpected");
 * ```
 */
export function augmentStatus<
  T extends KubernetesObject & { readonly status?: unknown },
>(
  object: T,
  options: {
    readonly now?: number | undefined;
    readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
  } = {},
): T & { readonly status: { readonly conditions: readonly Condition[] } } {
  checkOption(options, "object", {
    name: "options",
    subject: "augmentStatus()",
  });
  const { now = Date.now() } = options;
  const { status, reason, message } = statusOf(object, { ...options, now });
  const moment: ConditionMoment = { now };
  const before = (object.status ?? {}) as {
    readonly conditions?: readonly Condition[];
  };
  const implied = status === "InProgress"
    ? RECONCILING
    : status === "Failed"
    ? STALLED
    : undefined;
  let conditions = before.conditions ?? [];
  for (const type of [RECONCILING, STALLED]) {
    if (type !== implied) conditions = removeCondition(conditions, type);
  }
  if (implied !== undefined) {
    const words = { reason, message, status: "True" } as const;
    const old = conditions.find(({ type }) => type === implied);
    const since = old?.status === "True" ? old.lastTransitionTime : undefined;
    conditions = setCondition(conditions, { ...words, type: implied }, moment)
      .map((condition) =>
        condition.type === implied && since !== undefined
          ? { ...condition, lastTransitionTime: since }
          : condition
      );
  }
  return { ...object, status: { ...before, conditions } };
}
