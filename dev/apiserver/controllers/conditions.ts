/** Condition in the status of an object. */
export interface Condition {
  type: string;
  status: string;
  reason?: string | undefined;
  message?: string | undefined;
  lastTransitionTime?: string | undefined;
}

/**
 * Conditions with a new condition. An existing one stays if status and reason
 * are the same, and keeps its transition time if the status is the same.
 */
export function withCondition<T extends Condition>(
  conditions: readonly T[] | undefined,
  condition: T,
): T[] {
  const before = conditions?.find(({ type }) => type === condition.type);
  const { status, reason } = condition;
  if (before?.status === status && before.reason === reason) {
    return [...conditions ?? []];
  }
  return [
    ...conditions?.filter((other) => other !== before) ?? [],
    before?.status === status
      ? { ...condition, lastTransitionTime: before.lastTransitionTime }
      : condition,
  ];
}

/**
 * Conditions with a condition as it is now, as apimachinery's SetStatusCondition
 * writes it: message and generation follow, and the transition time stays if the
 * status is the same.
 */
export function withPresentCondition<T extends Condition>(
  conditions: readonly T[] | undefined,
  condition: T,
): T[] {
  const before = conditions?.find(({ type }) => type === condition.type);
  if (before === undefined) return [...conditions ?? [], condition];
  const present = before.status === condition.status
    ? { ...condition, lastTransitionTime: before.lastTransitionTime }
    : condition;
  return (conditions ?? []).map((one) => one === before ? present : one);
}

export function withoutCondition<T extends Condition>(
  conditions: readonly T[] | undefined,
  type: string,
): T[] {
  return conditions?.filter((condition) => condition.type !== type) ?? [];
}
