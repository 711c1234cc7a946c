import type { KubernetesObject } from "../../api/object.ts";

/** What every write changes, whoever did it. */
const BOOKKEEPING: readonly string[] = ["resourceVersion", "managedFields"];

/**
 * Whether a write explains every difference between two states of an object.
 *
 * A write that changed nothing is answered with the state that was there, and
 * nothing in the answer tells that state from one that the write made. What
 * tells them apart is a difference that the write did not ask for: then somebody
 * else had a part in it. Values that a server fills in beside those of the write
 * count as somebody else's, too: to be told once too often does no harm.
 *
 * @param sent What was written: the fields that were sent, with any value. A
 * list, or a value that is no object, stands for all within it.
 * @param before The state before the write.
 * @param after The state that the server answered.
 */
export function isExplainedBy(
  sent: unknown,
  before: KubernetesObject,
  after: KubernetesObject,
): boolean {
  const touchesMore = isRecord(sent) &&
    Object.keys(sent).some((key) => key !== "status");
  const ignored = touchesMore ? [...BOOKKEEPING, "generation"] : BOOKKEEPING;
  return explains(
    sent,
    comparable(before, ignored),
    comparable(after, ignored),
  );
}

function comparable(
  object: KubernetesObject,
  ignored: readonly string[],
): unknown {
  const metadata: Record<string, unknown> = { ...object.metadata };
  for (const name of ignored) delete metadata[name];
  return { ...object, metadata };
}

function explains(sent: unknown, before: unknown, after: unknown): boolean {
  if (sent !== undefined && !isRecord(sent)) return true;
  if (Array.isArray(before) && Array.isArray(after)) {
    return before.length === after.length &&
      before.every((item, index) => explains(undefined, item, after[index]));
  }
  if (!isRecord(before) || !isRecord(after)) {
    // A part that came or went as a whole is explained if it was sent at all.
    return before === after || sent !== undefined;
  }
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].every((key) =>
    explains(sent?.[key], before[key], after[key])
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
