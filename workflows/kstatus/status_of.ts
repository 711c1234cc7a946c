/**
 * Status of any object by the rules of kstatus, CEL rules of users, and waiting for
 * many objects by watches.
 *
 * Guarantees: the rules are pure functions of the object; a wait uses one watch per
 * kind and namespace and ends when its signal is aborted.
 *
 * The folder imports conditions and core.
 *
 * @module
 */
import { parseApiVersion } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { immediate } from "../../core/callback.ts";
import {
  at,
  conditionsAt,
  currentStatus,
  failedStatus,
  inProgressStatus,
  KIND_RULES,
  type ObjectStatus,
  type StatusRule,
} from "./status_rules.ts";
import {
  type Condition,
  findCondition,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "../conditions/condition.ts";

const RULES: OptionRules<NonNullable<Parameters<typeof statusOf>[1]>> = {
  now: "number?",
  rules: "map?",
};

/**
 * Computes the status of an object: whether it has reached its desired state.
 * Built-in kinds follow the rules of kstatus, all others their conditions
 * Reconciling, Stalled and Ready.
 *
 * @param object The object from the API server; any field may be missing or
 * invalid.
 * @param options `now` is the time in milliseconds since the Unix epoch (the
 * current time by default). `rules` are custom rules by `group/Kind` (`/Kind`
 * for the core group) or `group/*`, as functions or by `celRules`. They take
 * precedence over the built-in rules and over Reconciling and Stalled, but are
 * only used for objects that are not being deleted and whose generation was
 * observed.
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
  const subject = "statusOf()";
  checkOption(object, "object", { name: "object", subject });
  checkOptions(options, RULES, subject);
  const { now = Date.now(), rules } = options;
  const { group } = parseApiVersion(object.apiVersion ?? "");
  const name = `${group}/${object.kind ?? ""}`;
  const own = rules?.get(name) ?? rules?.get(`${group}/*`);
  const general = unsettledStatus(object) ??
    (own === undefined ? conditionStatus(object) : undefined);
  const rule = own ?? KIND_RULES.get(name) ?? readyStatus;
  return general ?? immediate(rule(object, { now }), "a rule of statuses");
}

/**
 * Status of objects of any kind that are being deleted or whose generation was
 * not observed.
 */
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

/** Status by the conditions Reconciling and Stalled, if either is True. */
function conditionStatus(object: unknown): ObjectStatus | undefined {
  for (const { type, status, reason, message } of conditionsAt(object)) {
    if (status !== "True") continue;
    if (type === "Reconciling") return inProgressStatus(reason, message);
    if (type === "Stalled") return failedStatus(reason, message);
  }
  return undefined;
}

/** Status of an object whose kind has no rule. */
function readyStatus(object: unknown): ObjectStatus {
  const ready = conditionsAt(object).find(({ type }) => type === "Ready");
  if (ready?.status === "True") return currentStatus("Resource is Ready");
  return ready === undefined
    ? currentStatus("Resource is current")
    : inProgressStatus(ready.reason, ready.message);
}

/**
 * Combines the statuses of several objects: Failed takes precedence, then
 * Unknown; otherwise the result is the desired status only if all have it.
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
 * Adds the conditions of kstatus to an object of any kind: Reconciling while it
 * is in progress, Stalled if it has failed, and otherwise neither. Tools that
 * only support conditions can then read every object.
 *
 * @param object The object from the API server; not modified.
 * @param options The time and custom rules, those of {@linkcode statusOf}.
 * @returns A copy with the conditions.
 * @throws {TypeError} If the options are invalid.
 *
 * @example A new Pod
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
  options: NonNullable<Parameters<typeof statusOf>[1]> = {},
): T & { readonly status: { readonly conditions: readonly Condition[] } } {
  checkOption(options, "object", {
    name: "options",
    subject: "augmentStatus()",
  });
  const { now = Date.now() } = options;
  const { status, reason, message } = statusOf(object, { ...options, now });
  const before = (object.status ?? {}) as {
    readonly conditions?: readonly Condition[];
  };
  const type = { InProgress: RECONCILING, Failed: STALLED }[status as string];
  const old = findCondition(before.conditions ?? [], type ?? "");
  let conditions = [RECONCILING, STALLED]
    .filter((other) => other !== type)
    .reduce<readonly Condition[]>(removeCondition, before.conditions ?? []);
  if (type !== undefined) {
    const words = { type, reason, message, status: "True" } as const;
    conditions = setCondition(conditions, words, { now });
    // As in Kubernetes, only another status is a transition.
    if (old?.status === "True") {
      const { lastTransitionTime } = old;
      conditions = conditions.map((condition) =>
        condition.type === type
          ? { ...condition, lastTransitionTime }
          : condition
      );
    }
  }
  return { ...object, status: { ...before, conditions } };
}
