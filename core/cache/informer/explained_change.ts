import { isJsonObject, ownValue } from "../../patch/json_value.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { parseRange } from "../../json/byte_range.ts";
import { differInStatus, type ObjectHeader } from "../../json/object_header.ts";

/** Metadata fields that every write changes. */
const BOOKKEEPING: readonly string[] = ["resourceVersion", "managedFields"];

/**
 * Whether a write explains every difference between two states of an object.
 *
 * The response to a write that changed nothing is the state from before the write,
 * and looks like a state that the write made. A difference that the write did not
 * request reveals a change by another client. Values that a server fills in beside
 * those of the write count as changes by another client, too: an additional event
 * does no harm.
 *
 * @param sent Fields that were sent, with any value. A list, or a value that is
 * not an object, stands for everything within it.
 * @param before State before the write.
 * @param after State in the response of the server.
 */
export function isExplainedBy(
  sent: unknown,
  before: KubernetesObject,
  after: KubernetesObject,
): boolean {
  const touchesMore = isJsonObject(sent) &&
    Object.keys(sent).some((key) => key !== "status");
  const ignored = touchesMore ? [...BOOKKEEPING, "generation"] : BOOKKEEPING;
  return explains(
    sent,
    comparable(before, ignored),
    comparable(after, ignored),
  );
}

/**
 * Whether a write explains every difference between two states that differ only in
 * their status. It returns the result of {@linkcode isExplainedBy}, but parses
 * only the status.
 *
 * @param sent Fields that were sent.
 * @param before Header of the state before the write.
 * @param after Header of the state in the response.
 * @returns Undefined if the states may differ in more than their status.
 */
export function statusExplainedBy(
  sent: unknown,
  before: ObjectHeader,
  after: ObjectHeader,
): boolean | undefined {
  if (!isJsonObject(sent) || !differInStatus(after, before)) return undefined;
  return explains(sent["status"], statusOf(before), statusOf(after));
}

function statusOf(header: ObjectHeader): unknown {
  const range = header.range("status");
  return range && parseRange(range);
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
  if (sent !== undefined && !isJsonObject(sent)) return true;
  if (Array.isArray(before) && Array.isArray(after)) {
    return before.length === after.length &&
      before.every((item, index) => explains(undefined, item, after[index]));
  }
  if (!isJsonObject(before) || !isJsonObject(after)) {
    // A part that was added or removed as a whole is explained if it was sent.
    return before === after || sent !== undefined;
  }
  const explainsField = (key: string) =>
    explains(
      sent && ownValue(sent, key),
      ownValue(before, key),
      ownValue(after, key),
    );
  return Object.keys(before).every(explainsField) &&
    Object.keys(after).every((key) =>
      Object.hasOwn(before, key) || explainsField(key)
    );
}
