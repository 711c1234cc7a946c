import type { KubernetesObject } from "../../core/api/object.ts";
import { timestamp } from "../../core/api/timestamp.ts";

/** Entry of `status.conditions`, as Kubernetes' `metav1.Condition`. */
export interface Condition {
  /** Type of the condition; unique in a list. */
  type: string;
  /** Status of the condition. */
  status: "True" | "False" | "Unknown";
  /** Machine-readable reason in CamelCase, such as `NewRevision`. */
  reason: string;
  /** Human-readable message. */
  message: string;
  /** Generation of the object for which the condition was set. */
  observedGeneration?: number | undefined;
  /** Last change of status, reason or message, to the second. */
  lastTransitionTime: string;
}

/** Status of an object with conditions. */
export interface ConditionedStatus {
  /** Newest generation that the controller has reconciled. */
  observedGeneration?: number | undefined;
  /** Conditions, one of each type. */
  conditions?: Condition[] | undefined;
  /** Token of the last requested run. */
  lastHandledReconcileAt?: string | undefined;
  /** Token of the last forced run. */
  lastHandledForceAt?: string | undefined;
}

/** Object with conditions. */
export interface Conditioned extends KubernetesObject {
  /** Status with conditions. */
  status?: ConditionedStatus | undefined;
}

/** Condition to set; the other fields are filled in. */
export type NewCondition =
  & Pick<Condition, "type" | "status" | "reason">
  & Partial<Pick<Condition, "message" | "lastTransitionTime">>;

/** Time and generation with which a condition is set. */
export type ConditionMoment = Parameters<typeof setCondition>[2];

/** Whether the object serves its purpose, in the words of kstatus. */
export const READY = "Ready";
/** The controller is still at work on the present generation. */
export const RECONCILING = "Reconciling";
/** The controller cannot go on without somebody's help. */
export const STALLED = "Stalled";

/** The types that stand first in a list, in this order. */
const FIRST_TYPES: readonly string[] = [STALLED, RECONCILING, READY];

/** How many characters a message may have, as the API server allows. */
export const MAX_MESSAGE_LENGTH = 32_768;

/**
 * Cuts a message to what the API server accepts, ending in `...`. Characters
 * are code points, so that none is cut in half.
 *
 * The limit is that of `metav1.Condition` in Kubernetes.
 */
export function limitMessage(message: string): string {
  // A code point is at most two units, so short texts need no counting.
  if (message.length <= MAX_MESSAGE_LENGTH) return message;
  const points = Array.from(message);
  return points.length <= MAX_MESSAGE_LENGTH
    ? message
    : `${points.slice(0, MAX_MESSAGE_LENGTH - 3).join("")}...`;
}

/**
 * Orders conditions: Stalled, Reconciling and Ready first, then what was
 * observed of a newer generation, then by type.
 */
export function compareConditions(a: Condition, b: Condition): number {
  return rank(a) - rank(b) ||
    (b.observedGeneration ?? 0) - (a.observedGeneration ?? 0) ||
    (a.type < b.type ? -1 : a.type > b.type ? 1 : 0);
}

function rank(condition: Condition): number {
  const index = FIRST_TYPES.indexOf(condition.type);
  return index < 0 ? FIRST_TYPES.length : index;
}

/** The condition of a type, if there is one. */
export function findCondition(
  conditions: readonly Condition[],
  type: string,
): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}

/** Whether two conditions say the same, whenever and of whatever generation. */
export function sameState(a: Condition, b: Condition): boolean {
  return a.type === b.type && a.status === b.status && a.reason === b.reason &&
    a.message === b.message;
}

/**
 * Sets one condition and gives the new, ordered list.
 *
 * The transition time moves when status, reason or message differ from what was
 * there (Flux' rule: more often than Kubernetes' own, which looks at the status
 * alone); a condition that says the same keeps its time and is only stamped
 * with the generation.
 *
 * @param conditions What is there; left as it is.
 * @param condition What to say.
 * @param moment When, and of which generation.
 *
 * @example Say the same twice
 * ```ts
 * import { setCondition } from "@coracle/operator/workflows";
 *
 * const up = { type: "Ready", status: "True", reason: "Up" } as const;
 * const before = setCondition([], up, { now: 0, generation: 1 });
 * const after = setCondition(before, up, { now: 60_000, generation: 2 });
 * if (after[0]?.lastTransitionTime !== "1970-01-01T00:00:00Z") {
 *   throw new Error("Unexpected transition");
 * }
 * ```
 */
export function setCondition(
  conditions: readonly Condition[],
  condition: NewCondition,
  moment: {
    readonly now: number;
    readonly generation?: number | undefined;
  },
): Condition[] {
  const next: Condition = {
    type: condition.type,
    status: condition.status,
    reason: condition.reason,
    message: limitMessage(condition.message ?? ""),
    lastTransitionTime: condition.lastTransitionTime ?? timestamp(moment.now),
  };
  if (moment.generation !== undefined) {
    next.observedGeneration = moment.generation;
  }
  const previous = findCondition(conditions, condition.type);
  if (previous !== undefined) {
    next.lastTransitionTime = sameState(previous, next)
      ? previous.lastTransitionTime
      : timestamp(moment.now);
  }
  return [...removeCondition(conditions, condition.type), next]
    .sort(compareConditions);
}

/** The list without the condition of a type. */
export function removeCondition(
  conditions: readonly Condition[],
  type: string,
): Condition[] {
  return conditions.filter((condition) => condition.type !== type);
}

/**
 * Says that the controller is at work: sets Reconciling and removes Stalled,
 * since an object is never both.
 */
export function markReconciling(
  conditions: readonly Condition[],
  words: Omit<NewCondition, "type" | "status">,
  moment: ConditionMoment,
): Condition[] {
  return setCondition(
    removeCondition(conditions, STALLED),
    { ...words, type: RECONCILING, status: "True" },
    moment,
  );
}

/**
 * Says that somebody must help: sets Stalled and removes Reconciling, since an
 * object is never both.
 */
export function markStalled(
  conditions: readonly Condition[],
  words: Omit<NewCondition, "type" | "status">,
  moment: ConditionMoment,
): Condition[] {
  return setCondition(
    removeCondition(conditions, RECONCILING),
    { ...words, type: STALLED, status: "True" },
    moment,
  );
}

/** Whether a condition is there and True. */
export function isTrue(
  conditions: readonly Condition[],
  type: string,
): boolean {
  return findCondition(conditions, type)?.status === "True";
}

/** Whether a condition is there and False. */
export function isFalse(
  conditions: readonly Condition[],
  type: string,
): boolean {
  return findCondition(conditions, type)?.status === "False";
}

/** Whether a condition is Unknown, or not there at all. */
export function isUnknown(
  conditions: readonly Condition[],
  type: string,
): boolean {
  return !isTrue(conditions, type) && !isFalse(conditions, type);
}

/** Stalled is True and Reconciling is not. */
export function isStalled(conditions: readonly Condition[]): boolean {
  return isTrue(conditions, STALLED) && !isTrue(conditions, RECONCILING);
}

/** Reconciling is True and Stalled is not. */
export function isReconciling(conditions: readonly Condition[]): boolean {
  return isTrue(conditions, RECONCILING) && !isTrue(conditions, STALLED);
}

/** Ready is True, and neither Reconciling nor Stalled is. */
export function isReady(conditions: readonly Condition[]): boolean {
  return isTrue(conditions, READY) && !isTrue(conditions, RECONCILING) &&
    !isTrue(conditions, STALLED);
}
