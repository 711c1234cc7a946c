import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOption } from "../../core/api/option_rules.ts";
import {
  type Condition,
  type ConditionMoment,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "../conditions/condition.ts";
import { statusOf, type StatusOptions } from "./status_of.ts";

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
  options: StatusOptions = {},
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
