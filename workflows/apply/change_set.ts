import { ApiError } from "../../core/api/api_error.ts";
import {
  type ObjectReference,
  referenceText,
} from "../kstatus/object_reference.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { isJsonObject, jsonEquals } from "../../core/patch/json_value.ts";

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

/** One field that is not as it should be. */
export interface FieldDifference {
  /** Which one, as a JSON Pointer: `/spec/replicas`. */
  readonly path: string;
  /** What is there; absent if nothing. */
  readonly before?: unknown;
  /** What there should be; absent if nothing. */
  readonly after?: unknown;
}

/** What stands for a value that must not be seen. */
const MASKED = "***";

/**
 * What differs between two states of an object: its labels, its annotations and
 * everything beside metadata and status. The values of a Secret are masked, so
 * that one sees which have changed and not to what.
 *
 * @param before The object as it is; undefined if there is none.
 * @param after The object as it would be.
 *
 * @example Which key of a Secret has changed
 * ```ts
 * import { objectChanges } from "@coracle/operator/workflows";
 *
 * const secret = (password: string) => ({
 *   apiVersion: "v1",
 *   kind: "Secret",
 *   metadata: { name: "login" },
 *   data: { password },
 * });
 * const [change] = objectChanges(secret("b2xk"), secret("bmV3"));
 * if (change?.path !== "/data/password") throw new Error("Unexpected path");
 * if (change.after !== "*** (after)") throw new Error("Unexpected value");
 * ```
 */
export function objectChanges(
  before: KubernetesObject | undefined,
  after: KubernetesObject,
): FieldDifference[] {
  const changes: FieldDifference[] = [];
  compare(comparable(before), comparable(after), { path: "", changes });
  return isSecret(after) ? changes.map(masked) : changes;
}

/** Whether an object holds what must not be seen. */
export function isSecret({ apiVersion, kind }: {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
}): boolean {
  return apiVersion === "v1" && kind === "Secret";
}

/** The part of an object that its author can mean. */
function comparable(object: KubernetesObject | undefined): unknown {
  if (object === undefined) return {};
  const { metadata, status: _, apiVersion: _version, kind: _kind, ...fields } =
    object as KubernetesObject & { readonly status?: unknown };
  const { labels = {}, annotations = {} } = metadata;
  return { ...fields, metadata: { labels, annotations } };
}

function compare(
  before: unknown,
  after: unknown,
  { path, changes }: {
    readonly path: string;
    readonly changes: FieldDifference[];
  },
): void {
  if (jsonEquals(before, after)) return;
  const inner = (name: string | number) => ({
    path: `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`,
    changes,
  });
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const name of names) compare(before[name], after[name], inner(name));
    return;
  }
  if (
    Array.isArray(before) && Array.isArray(after) &&
    before.length === after.length
  ) {
    before.forEach((item, index) => compare(item, after[index], inner(index)));
    return;
  }
  changes.push({
    path,
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  });
}

/** The annotation in which kubectl keeps the whole object as it was applied. */
const LAST_APPLIED =
  "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

function masked(change: FieldDifference): FieldDifference {
  const { path } = change;
  const hides = /^\/(?:data|stringData)(?:\/|$)/.test(path) ||
    path === LAST_APPLIED || path === "/metadata/annotations";
  if (!hides) return change;
  return {
    path,
    ...("before" in change && { before: `${MASKED} (before)` }),
    ...("after" in change && { after: `${MASKED} (after)` }),
  };
}
