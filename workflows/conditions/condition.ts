import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOption } from "../../core/api/options.ts";
import { timestamp } from "../../core/api/timestamp.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";

/** Entry of `status.conditions`, as Kubernetes' `metav1.Condition`. */
export interface Condition {
  /** Type of the condition; unique in a list. */
  type: string;
  /** Whether the condition holds; `Unknown` if that is not known so far. */
  status: "True" | "False" | "Unknown";
  /** Machine-readable reason in CamelCase, such as `NewRevision`. */
  reason: string;
  /** Human-readable message. */
  message: string;
  /** Generation of the object for which the condition was set. */
  observedGeneration?: number | undefined;
  /** Time of the last change of status, reason or message, to the second. */
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

/** Object whose status has conditions. */
export interface Conditioned extends KubernetesObject {
  /** Status with conditions. */
  status?: ConditionedStatus | undefined;
}

/** Condition to set; the other fields are filled in. */
export type NewCondition =
  & Pick<Condition, "type" | "status" | "reason">
  & Partial<Pick<Condition, "message" | "lastTransitionTime">>;

export type ConditionMoment = Parameters<typeof setCondition>[2];

/** Condition type of an object that has reached its desired state. */
export const READY = "Ready";
/** Condition type of an object whose newest generation is being reconciled. */
export const RECONCILING = "Reconciling";
/** Condition type of an object that needs a user to make progress. */
export const STALLED = "Stalled";

const FIRST_TYPES: readonly string[] = [STALLED, RECONCILING, READY];

/** Maximum length of a message in characters, as enforced by the API server. */
export const MAX_MESSAGE_LENGTH = 32_768;

/**
 * Truncates a message to the limit of `metav1.Condition`, ending in `...`.
 * Characters are code points, so that none is split.
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
 * Compares conditions: Stalled, Reconciling and Ready come first, then newer
 * generations, then types in alphabetical order.
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

/**
 * Reads the conditions of a status, whose list and entries may have any type,
 * because a user may have edited them.
 */
export function conditionsIn(status: unknown): Condition[] {
  const list = isJsonObject(status) ? status["conditions"] : undefined;
  if (!Array.isArray(list)) return [];
  return list.filter((entry, index) =>
    isJsonObject(entry) && typeof entry["type"] === "string" &&
    list.findIndex((other) => other?.type === entry["type"]) === index
  );
}

/**
 * Finds the condition of a type.
 *
 * @param conditions The list; a status that is not written yet has none.
 */
export function findCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * Whether two conditions are equal apart from their times and generations. A
 * message that another controller has left out is empty.
 */
export function sameState(a: Condition, b: Condition): boolean {
  return a.type === b.type && a.status === b.status && a.reason === b.reason &&
    (a.message ?? "") === (b.message ?? "");
}

/**
 * Reason and message of a condition that another controller or a user may have
 * written: without a reason it is `Unspecified`, without a message empty.
 */
export function wordsOf({ reason, message }: Condition): Words {
  return {
    reason: typeof reason === "string" && reason ? reason : "Unspecified",
    message: typeof message === "string" ? message : "",
  };
}

/**
 * Sets a condition and returns the new list, in order.
 *
 * The transition time changes when status, reason or message differ from the
 * previous condition, which is Flux' rule; with `transition: "status"` when the
 * status does, which is that of Kubernetes. A condition that keeps its time gets
 * the new generation all the same.
 *
 * @param conditions The current list, if there is one; not modified.
 * @param condition The condition to set.
 * @param moment `now` is the time in milliseconds since the Unix epoch;
 * `generation` is the reconciled generation of the object, if any.
 * @throws {TypeError} If the moment has no time.
 *
 * @example Set an equal condition again
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
  conditions: readonly Condition[] | undefined,
  condition: NewCondition,
  moment: {
    readonly now: number;
    readonly generation?: number | undefined;
    /**
     * What changes the transition time: any difference, or that of the status.
     *
     * @default {"any"}
     */
    readonly transition?: "any" | "status" | undefined;
  },
): Condition[] {
  const subject = "setCondition()";
  checkOption(moment, "object", { name: "moment", subject });
  checkOption(moment.now, "number", { name: "moment.now", subject });
  checkOption(moment.transition, ["any", "status", undefined], {
    name: "moment.transition",
    subject,
  });
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
    const isSame = moment.transition === "status"
      ? previous.status === next.status
      : sameState(previous, next);
    // One that others have written may have no time, which servers refuse.
    next.lastTransitionTime = isSame && previous.lastTransitionTime ||
      timestamp(moment.now);
  }
  return [...removeCondition(conditions, condition.type), next]
    .sort(compareConditions);
}

/** Returns the list without the condition of a type. */
export function removeCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}

/** Reason and message that several conditions of an object share. */
type Words = Pick<Condition, "reason" | "message">;

/**
 * Sets Reconciling or Stalled and removes the other: an object never has both.
 */
export function markAs(
  conditions: readonly Condition[],
  { type, ...words }: Words & {
    readonly type: typeof RECONCILING | typeof STALLED;
  },
  moment: ConditionMoment,
): Condition[] {
  const rest = removeCondition(
    conditions,
    type === STALLED ? RECONCILING : STALLED,
  );
  return setCondition(rest, { ...words, type, status: "True" }, moment);
}

/** Sets Ready, and the type `also` with the same reason and message. */
export function setReadiness(
  conditions: readonly Condition[],
  { status, also, ...words }: Words & {
    readonly status: Condition["status"];
    readonly also: typeof RECONCILING | typeof STALLED | undefined;
  },
  moment: ConditionMoment,
): Condition[] {
  const ready = { ...words, type: READY, status };
  const list = setCondition(conditions, ready, moment);
  return also === undefined
    ? removeCondition(removeCondition(list, RECONCILING), STALLED)
    : markAs(list, { ...words, type: also }, moment);
}

/** Whether a condition is present and True. */
export function isTrue(
  conditions: readonly Condition[] | undefined,
  type: string,
): boolean {
  return findCondition(conditions, type)?.status === "True";
}

export function isReconciling(conditions: readonly Condition[]): boolean {
  return isTrue(conditions, RECONCILING) && !isTrue(conditions, STALLED);
}

/** Whether Ready is True, and neither Reconciling nor Stalled is. */
export function isReady(
  conditions: readonly Condition[] | undefined,
): boolean {
  return isTrue(conditions, READY) && !isTrue(conditions, RECONCILING) &&
    !isTrue(conditions, STALLED);
}
