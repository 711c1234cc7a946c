import { type Duration, milliseconds } from "../api/duration.ts";
import type {
  DeepPartial,
  KubernetesObject,
  UntypedObject,
} from "../api/object.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";

/** Argument of `patchStatus` for a kind; `never` for one without a status. */
export type StatusPatch<P extends KubernetesObject> = DeepPartial<
  P extends { status?: infer S } ? NonNullable<S>
    : string extends keyof P ? Record<string, unknown>
    : keyof P extends keyof KubernetesObject ? Record<string, unknown>
    : never
>;

/** @internal Names of all fields of a type; a list has those of its items. */
type FieldNames<T> = T extends readonly (infer Item)[]
  ? unknown extends Item ? Record<never, never> : FieldNames<NonNullable<Item>>
  : T extends object ? unknown extends T ? Record<never, never>
    : [keyof T] extends [never] ? Record<never, never>
    : {
      readonly names?: `${Exclude<keyof T, symbol>}`;
      readonly inner?: {
        readonly [Name in keyof T]?: FieldNames<NonNullable<T[Name]>>;
      };
    }
  : Record<never, never>;

/** Options of the results of `reconcile` and `onError`. */
export interface ResultOptions {
  /**
   * Method of the write. Defaults to a JSON merge patch with the fields given.
   *
   * - `"json"`: JSON Patch with the differences between the object that the
   *   reconciler was given and the same object with the fields merged in.
   * - `"replace"`: update of the object that the reconciler was given, with the
   *   fields merged in and its `resourceVersion`. If another client has changed
   *   the object, the write fails with a conflict, and the run is retried.
   */
  readonly method?: "json" | "replace" | undefined;
  /**
   * Whether this run has observed the generation of the object. If the status
   * schema of the kind has the field `observedGeneration`, the framework sets it
   * after each successful run, unless the result contains another value than the
   * object. Set this to false if the object is not reconciled yet, or if the
   * reconciler sets the field itself.
   *
   * @default {true}
   */
  readonly observed?: boolean | undefined;
}

/**
 * Result of `reconcile` and `onError`: what to write, and when to run again.
 * Created by {@linkcode noUpdate}, {@linkcode patchStatus},
 * {@linkcode setStatus}, {@linkcode patchResource} and
 * {@linkcode patchResourceAndStatus}.
 *
 * @typeParam Status Type of the status fields to write.
 * @typeParam Resource Type of the object fields to write.
 */
export class ReconcileResult<
  Status extends object = object,
  Resource extends object = object,
> {
  /** Part of the type alone: a misspelt field of the status does not compile. */
  declare readonly statusFields: FieldNames<Status>;
  /** Part of the type alone: the error of a wrong value names its field. */
  declare readonly statusValues: Status;
  /** Part of the type alone: a misspelt field of the object does not compile. */
  declare readonly resourceFields: FieldNames<Resource>;
  /** Fields of the object to write, before the status. */
  readonly resource: Resource | undefined;
  /** Fields of the status to write. */
  readonly status: Status | undefined;
  /** Method of the write; `"apply"` for the whole status of `setStatus`. */
  readonly method: ResultOptions["method"] | "apply";
  /** Delay until the next run in milliseconds, from the end of this run. */
  readonly delay: number | undefined;
  /** Whether a failed run is retried; only considered in results of `onError`. */
  readonly retry: boolean;
  /** Whether the generation was observed; see {@linkcode ResultOptions.observed}. */
  readonly observed: boolean;

  /**
   * Creates a result; {@linkcode patchStatus} is easier to read.
   *
   * @param outcome What to write, and when to run again.
   */
  constructor(
    outcome: Pick<ResultOptions, "observed"> & {
      readonly method?: ResultOptions["method"] | "apply";
      readonly resource?: Resource | undefined;
      readonly status?: Status | undefined;
      readonly delay?: number | undefined;
      readonly retry?: boolean | undefined;
    },
  ) {
    this.resource = outcome.resource;
    this.status = outcome.status;
    this.method = outcome.method;
    this.delay = outcome.delay;
    this.retry = outcome.retry ?? true;
    this.observed = outcome.observed ?? true;
    Object.freeze(this);
  }

  /**
   * Copies the result with a delay until the next run, which can be earlier if
   * an event causes it. In a result of `onError`, the delay replaces the retry.
   *
   * @param delay Milliseconds, or text such as `"10s"`. With 0 the object runs
   * again immediately, after all objects that are already waiting.
   * @throws {RangeError | SyntaxError} If the delay is not a duration.
   */
  rescheduleAfter(delay: Duration): ReconcileResult<Status, Resource> {
    return new ReconcileResult({
      ...this,
      delay: milliseconds(delay, "rescheduleAfter"),
    });
  }

  /**
   * Copies the result with retries ruled out. The run counts as failed, and the
   * object runs again after the next event, or when the `maxInterval` of the
   * controller has passed. Only considered in results of `onError`.
   */
  withoutRetry(): ReconcileResult<Status, Resource> {
    return new ReconcileResult({ ...this, retry: false });
  }
}

/**
 * Result of `cleanup`: whether the finalizer is removed. Created by
 * {@linkcode removeFinalizer} and {@linkcode keepFinalizer}.
 */
export class CleanupResult {
  /** Whether the finalizer is removed, so that the object can be deleted. */
  readonly finalizerRemoved: boolean;
  /** Delay until the next run in milliseconds, from the end of this run. */
  readonly delay: number | undefined;

  /**
   * Creates a result; {@linkcode keepFinalizer} is easier to read.
   *
   * @param outcome Whether the finalizer is removed, and when to run again.
   */
  constructor(outcome: {
    readonly finalizerRemoved: boolean;
    readonly delay?: number | undefined;
  }) {
    this.finalizerRemoved = outcome.finalizerRemoved;
    this.delay = outcome.delay;
    Object.freeze(this);
  }

  /**
   * Copies the result with a delay until the next run of `cleanup`.
   *
   * @param delay Milliseconds, or text such as `"10s"`.
   * @throws {TypeError} If the finalizer is removed, after which there is no
   * further run.
   * @throws {RangeError | SyntaxError} If the delay is not a duration.
   */
  rescheduleAfter(delay: Duration): CleanupResult {
    if (this.finalizerRemoved) {
      throw new TypeError(
        "Cannot reschedule a cleanup that removes the finalizer: use keepFinalizer().rescheduleAfter(…)",
      );
    }
    return new CleanupResult({
      finalizerRemoved: false,
      delay: milliseconds(delay, "rescheduleAfter"),
    });
  }
}

const OBSERVED_RULES: OptionRules<Pick<ResultOptions, "observed">> = {
  observed: "boolean?",
};
const RESULT_RULES: OptionRules<ResultOptions> = {
  ...OBSERVED_RULES,
  method: ["json", "replace", undefined],
};

/** Checks the arguments of a function that creates a result. */
function checkWrite(
  subject: string,
  parts: { readonly resource?: object; readonly status?: object },
  options: ResultOptions,
): void {
  for (const name in parts) {
    const part = parts[name as keyof typeof parts];
    checkOption(part, "object", { name, subject });
  }
  if (options !== NO_OPTIONS) checkOptions(options, RESULT_RULES, subject);
}

const NO_OPTIONS: ResultOptions = Object.freeze({});

const NO_UPDATE: ReconcileResult<never, never> = new ReconcileResult({});
const REMOVE_FINALIZER: CleanupResult = new CleanupResult({
  finalizerRemoved: true,
});
const KEEP_FINALIZER: CleanupResult = new CleanupResult({
  finalizerRemoved: false,
});

/**
 * Result without fields to write. Only the observed generation is written, if
 * the status schema has it. Returning nothing has the same effect.
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function noUpdate(
  options?: Pick<ResultOptions, "observed">,
): ReconcileResult<never, never> {
  if (options === undefined) return NO_UPDATE;
  checkOptions(options, OBSERVED_RULES, "noUpdate()");
  return new ReconcileResult<never, never>({ observed: options.observed });
}

/**
 * Result that changes the given status fields and no others. Objects are merged
 * field by field, `undefined` leaves a field unchanged, `null` removes it, and
 * a list is replaced as a whole. A list with keys in the schema of the kind
 * (`x-kubernetes-list-type: map`, such as `conditions`) is merged entry by
 * entry with the list on the server.
 *
 * @param status Status fields to change.
 * @throws {TypeError | RangeError} If the status is not an object, or an option
 * is unknown or invalid.
 *
 * @example Write a status field and run again after ten seconds
 * ```ts
 * import { patchStatus } from "@coracle/operator";
 *
 * const result = patchStatus({ ready: false }).rescheduleAfter("10s");
 * ```
 */
export function patchStatus<const Status extends object>(
  status: Status,
  options: ResultOptions = NO_OPTIONS,
): ReconcileResult<Status, never> {
  checkWrite("patchStatus()", { status }, options);
  return new ReconcileResult<Status, never>({ ...options, status });
}

/**
 * Result that writes the whole status of the controller. Fields that the
 * controller wrote before, with `setStatus` or `patchStatus`, even in an
 * earlier process, are removed if they are absent now. Fields and keyed list
 * entries of other field managers stay unless the status mentions them.
 *
 * @param status All status fields of the controller. The framework adds
 * `observedGeneration` as it does for {@linkcode patchStatus}.
 * @throws {TypeError | RangeError} If the status is not an object, or an option
 * is unknown or invalid.
 *
 * @example Remove a message by leaving it out
 * ```ts
 * import { setStatus } from "@coracle/operator/core";
 *
 * const failed = setStatus({ ready: false, message: "No quota" });
 * const succeeded = setStatus({ ready: true });
 * ```
 */
export function setStatus<const Status extends object>(
  status: Status,
  options: Pick<ResultOptions, "observed"> = {},
): ReconcileResult<Status, never> {
  const subject = "setStatus()";
  checkOption(status, "object", { name: "status", subject });
  checkOptions(options, OBSERVED_RULES, subject);
  return new ReconcileResult<Status, never>({
    ...options,
    status,
    method: "apply",
  });
}

/**
 * Result that changes the given fields of the object, such as labels or parts
 * of the spec, by the rules of {@linkcode patchStatus}. The whole object can be
 * given: its status is not written, and the finalizer of the controller is kept.
 * To write all fields that the controller wants to own, and remove others that
 * it wrote before, use {@linkcode Context.apply}.
 *
 * @param resource Fields to change.
 * @throws {TypeError | RangeError} If the fields are not an object or have a
 * status without being a whole object, or an option is unknown or invalid.
 *
 * @example Label the primary
 * ```ts
 * import { patchResource } from "@coracle/operator/core";
 *
 * const labels = { "sample.coracle.dev/size": "large" };
 * const result = patchResource({ metadata: { labels } });
 * ```
 */
export function patchResource<const Resource extends object>(
  resource: Resource,
  options: ResultOptions = NO_OPTIONS,
): ReconcileResult<never, Resource> {
  checkWrite("patchResource()", { resource }, options);
  const { metadata, status } = resource as Partial<UntypedObject>;
  if (status !== undefined && metadata?.name === undefined) {
    throw new TypeError(
      `Cannot patch a resource: its status is written by patchStatus() or patchResourceAndStatus(): received ${
        Object.keys(resource).join(", ")
      }`,
    );
  }
  return new ReconcileResult<never, Resource>({ ...options, resource });
}

/**
 * Result that changes fields of the object and then of its status, in two
 * requests: {@linkcode patchResource} and {@linkcode patchStatus}.
 *
 * @param resource Fields of the object to change.
 * @param status Status fields to change.
 * @throws {TypeError | RangeError} If an argument is not an object, or an option is
 * unknown or invalid.
 */
export function patchResourceAndStatus<
  const Resource extends object,
  const Status extends object,
>(
  resource: Resource,
  status: Status,
  options: ResultOptions = NO_OPTIONS,
): ReconcileResult<Status, Resource> {
  checkWrite("patchResourceAndStatus()", { resource, status }, options);
  const outcome = { ...options, resource, status };
  return new ReconcileResult<Status, Resource>(outcome);
}

/** Result that ends a cleanup: the finalizer is removed, and the object is deleted. */
export function removeFinalizer(): CleanupResult {
  return REMOVE_FINALIZER;
}

/**
 * Result that keeps the finalizer: cleanup runs again after the next event, or
 * after the delay given with `rescheduleAfter`.
 *
 * @example Check again after five seconds
 * ```ts
 * import { keepFinalizer } from "@coracle/operator/core";
 *
 * const result = keepFinalizer().rescheduleAfter("5s");
 * ```
 */
export function keepFinalizer(): CleanupResult {
  return KEEP_FINALIZER;
}
