import { ApiError } from "../../core/api/api_error.ts";
import {
  type ObjectReference,
  referenceText,
} from "../kstatus/object_reference.ts";
import { type FieldDifference, isSecret } from "./object_diff.ts";

/**
 * What happened to an object, or would happen.
 *
 * - `"created"`: it was not there, or was replaced.
 * - `"configured"`: it was there and not as it should be.
 * - `"unchanged"`: nothing was written.
 * - `"deleted"`: it is gone, or on its way out.
 * - `"skipped"`: its author wants it left alone, or it is not of this set.
 * - `"unknown"`: nobody can say before what it needs is there.
 */
export type ApplyAction =
  | "created"
  | "configured"
  | "unchanged"
  | "deleted"
  | "skipped"
  | "unknown";

/** What happened to one object of a set. */
export interface AppliedChange {
  /** Which object. */
  readonly reference: ObjectReference;
  /** What happened. */
  readonly action: ApplyAction;
  /** The fields that were not as they should be; Secrets' values are masked. */
  readonly fields: readonly FieldDifference[];
}

/** An object of a set could not be applied; those before it were. */
export class ApplySetError extends Error {
  /** The object that failed; undefined if a whole stage did not get ready. */
  readonly reference: ObjectReference | undefined;
  /** What was done before. */
  readonly changes: readonly AppliedChange[];

  /**
   * Says what failed. Of a Secret nothing is told but the reason: what a server
   * says of one may quote it.
   *
   * @param cause Why.
   * @param options Which object it was, and what was done before.
   */
  constructor(
    cause: unknown,
    options: {
      readonly reference?: ObjectReference | undefined;
      readonly changes: readonly AppliedChange[];
    },
  ) {
    const { reference, changes } = options;
    const hides = reference !== undefined && isSecret(reference);
    const said = cause instanceof Error ? cause.message : String(cause);
    // The client says already which object it could not apply.
    const text = said.replace(/^Cannot apply [^:]*: /, "");
    const reason = ApiError.is(cause)
      ? cause.reason || cause.status
      : "an error";
    super(
      `Cannot apply ${
        reference === undefined ? "the set" : referenceText(reference)
      }: ${hides ? `the server refused it: received ${reason}` : text}`,
      hides ? {} : { cause },
    );
    this.name = "ApplySetError";
    this.reference = reference;
    this.changes = changes;
  }
}

/**
 * A change set for people: an object a line, with its fields below.
 *
 * @example What a log may say
 * ```ts
 * import { changeSetText } from "@coracle/operator/workflows";
 *
 * const text = changeSetText([{
 *   reference: { apiVersion: "v1", kind: "ConfigMap", name: "web" },
 *   action: "configured",
 *   fields: [{ path: "/data/color", before: "red", after: "blue" }],
 * }]);
 * if (text !== 'ConfigMap/web configured\n  /data/color: "red" -> "blue"') {
 *   throw new Error("Unexpected text");
 * }
 * ```
 */
export function changeSetText(changes: readonly AppliedChange[]): string {
  return changes.flatMap(({ reference, action, fields }) => [
    `${referenceText(reference)} ${action}`,
    ...action === "configured" ? fields.map(fieldText) : [],
  ]).join("\n");
}

function fieldText(change: FieldDifference): string {
  const text = (value: unknown) => JSON.stringify(value) ?? "nothing";
  return `  ${change.path}: ${text(change.before)} -> ${text(change.after)}`;
}
