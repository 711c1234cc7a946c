import { ApiError } from "../../core/api/api_error.ts";
import { isImmutable } from "../dependents/dependent_resource.ts";
import { type ObjectReference, referenceText } from "../kstatus/wait_for.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { jsonPointer } from "../../core/patch/json_patch.ts";
import { differences } from "../../core/patch/json_value.ts";
import { errorMessage } from "../../core/error_text.ts";

/** Change of one object of a set. */
export interface AppliedChange {
  /** Reference to the object. */
  readonly reference: ObjectReference;
  /**
   * Action that was taken, or would be taken in a dry run.
   *
   * - `"created"`: it did not exist, or was replaced.
   * - `"configured"`: it existed and differed.
   * - `"unchanged"`: nothing was written.
   * - `"deleted"`: it is deleted, or terminating.
   * - `"skipped"`: an annotation excludes it, or it is not in the set.
   * - `"unknown"`: not known before its namespace or kind exists.
   */
  readonly action:
    | "created"
    | "configured"
    | "unchanged"
    | "deleted"
    | "skipped"
    | "unknown";
  /** Fields that differed; the values of Secrets are masked. */
  readonly fields: readonly {
    /** JSON Pointer of the field, such as `/spec/replicas`. */
    readonly path: string;
    /** Current value; absent if none exists. */
    readonly before?: unknown;
    /** Desired value; absent if none exists. */
    readonly after?: unknown;
  }[];
}

export type FieldDifference = AppliedChange["fields"][number];

/**
 * Error for an object of a set that could not be applied. The objects before it
 * were applied.
 */
export class ApplySetError extends Error {
  /**
   * Reference to the failed object; undefined if a stage did not become
   * Current.
   */
  readonly reference: ObjectReference | undefined;
  /** Changes before the failure. */
  readonly changes: readonly AppliedChange[];

  /**
   * Creates the error. For a Secret the message only has the reason, because
   * the server's message may quote its values.
   *
   * @param cause The error.
   * @param options The failed object, and the changes before it.
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
    const said = errorMessage(cause);
    // The client's message already names the object.
    const text = said.replace(/^Cannot apply [^:]*: /, "");
    const reason = ApiError.is(cause)
      ? cause.reason || cause.status
      : "an error";
    super(
      `Cannot apply ${
        reference === undefined ? "the set" : referenceText(reference)
      }: ${hides ? `the server refused it: ${reason}` : text}${
        isImmutable(cause)
          ? `; the option "force", or the annotation of that name, deletes such an object and creates it again`
          : ""
      }`,
      hides ? {} : { cause },
    );
    this.name = "ApplySetError";
    this.reference = reference;
    this.changes = changes;
  }
}

/**
 * Compares two states of an object: its labels, its annotations and everything
 * except metadata and status. The values of a Secret are masked, so that only
 * the fact of a change is visible.
 */
export function objectChanges(
  before: KubernetesObject | undefined,
  after: KubernetesObject,
): FieldDifference[] {
  const changes = Array.from(
    differences(comparable(before), comparable(after)),
    ({ path, ...values }) => ({ path: jsonPointer(path), ...values }),
  );
  return isSecret(after) ? changes.map(masked) : changes;
}

function isSecret({ apiVersion, kind }: {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
}): boolean {
  return apiVersion === "v1" && kind === "Secret";
}

/** Selects the fields that the author of an object sets. */
function comparable(object: KubernetesObject | undefined): unknown {
  const { metadata, status: _, apiVersion: _version, kind: _kind, ...fields } =
    (object ?? {}) as Partial<KubernetesObject> & { readonly status?: unknown };
  const { labels = {}, annotations = {} } = metadata ?? {};
  return { ...fields, metadata: { labels, annotations } };
}

/** Annotation in which kubectl stores the applied object. */
const LAST_APPLIED =
  "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

function masked(change: FieldDifference): FieldDifference {
  const { path } = change;
  const hides = /^\/(?:data|stringData)(?:\/|$)/.test(path) ||
    path === LAST_APPLIED;
  return hides
    ? {
      path,
      ...("before" in change && { before: "*** (before)" }),
      ...("after" in change && { after: "*** (after)" }),
    }
    : change;
}
