import { type Duration, milliseconds } from "../api/duration.ts";
import type { KubernetesObject } from "../api/object.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";

/** Lists at any depth may be read-only, as literals of results are. */
export type ReadonlyDeep<T> = T extends readonly (infer Item)[]
  ? readonly ReadonlyDeep<Item>[]
  : T extends object ? { readonly [K in keyof T]: ReadonlyDeep<T[K]> }
  : T;

/**
 * Part of an object as a result carries it: every field may be left out, lists
 * are given whole, and `null` deletes a field where the write is a merge patch.
 */
export type PartialDeep<T> = T extends readonly (infer Item)[]
  ? readonly ReadonlyDeep<Item>[]
  : T extends object
    ? { readonly [K in keyof T]?: PartialDeep<T[K]> | null | undefined }
  : T;

/** The type of a kind's status; any object where it is not known. */
export type StatusOf<P extends KubernetesObject> = P extends
  { status?: infer S } ? NonNullable<S> : Record<string, unknown>;

/** What `patchStatus` takes for a kind. */
export type StatusPatch<P extends KubernetesObject> = PartialDeep<StatusOf<P>>;

/** What `patchResource` takes for a kind. */
export type ResourcePatch<P extends KubernetesObject> = PartialDeep<
  Omit<P, "status">
>;

/**
 * How a result is written.
 *
 * - `"apply"`: server-side apply. The fields given are all that the controller
 *   wants to own: a field that it gave last time and leaves out now goes away.
 * - `"merge"`: a merge patch. Fields left out stay, `null` deletes.
 * - `"json"`: a JSON Patch of the differences between the object that the
 *   reconciler was given and the same object with the fields merged in.
 * - `"replace"`: the object that the reconciler was given, with the fields
 *   merged in, is put with its `resourceVersion`: the write fails with a
 *   conflict, and the run is retried, if anybody changed the object meanwhile.
 */
export type WriteMethod = "apply" | "merge" | "json" | "replace";

/** Options of every result of `reconcile`. */
export interface ObservedOption {
  /**
   * Whether the generation of the object counts as observed by this run. Where
   * the status schema of its kind has an `observedGeneration`, the framework
   * writes it after each run that went well, unless the result says another one
   * or this is false: for reconcilers that are not there yet, or keep the field
   * themselves.
   *
   * @default {true}
   */
  readonly observed?: boolean | undefined;
}

/** Options of the results that write. */
export interface ResultOptions extends ObservedOption {
  /**
   * How the fields are written.
   *
   * @default {"apply", or "merge" for controllers with `serverSideApply: false`}
   */
  readonly method?: WriteMethod | undefined;
}

/** What a run asks the framework to do. Made by the functions of this module. */
export interface RunOutcome {
  /** Fields of the object to write, before the status. */
  readonly resource?: object | undefined;
  /** Fields of the status to write. */
  readonly status?: object | undefined;
  /** How they are written. */
  readonly method?: WriteMethod | undefined;
  /** When to run again, in milliseconds from the end of the run. */
  readonly delay?: number | undefined;
  /** Whether an error is final; only `onError` decides that. */
  readonly retry: boolean;
  /** Whether the generation counts as observed; see `ObservedOption`. */
  readonly observed?: boolean | undefined;
}

/**
 * What `reconcile` and `onError` return.
 *
 * @typeParam Status The type of the status that is written.
 * @typeParam Resource The type of the fields that are written.
 */
export class ReconcileResult<
  out Status extends object = object,
  out Resource extends object = object,
> implements RunOutcome {
  /** The fields of the object to write. */
  readonly resource: Resource | undefined;
  /** The status to write. */
  readonly status: Status | undefined;
  /** How they are written. */
  readonly method: WriteMethod | undefined;
  /** After how many milliseconds to run again, if it was said. */
  readonly delay: number | undefined;
  /** Whether a failure is retried. */
  readonly retry: boolean;
  /** Whether the generation counts as observed. */
  readonly observed: boolean;

  /**
   * Makes a result; the functions of this module read better.
   *
   * @param outcome What the run asks for.
   */
  constructor(outcome: {
    readonly resource?: Resource | undefined;
    readonly status?: Status | undefined;
    readonly method?: WriteMethod | undefined;
    readonly delay?: number | undefined;
    readonly retry?: boolean | undefined;
    readonly observed?: boolean | undefined;
  }) {
    this.resource = outcome.resource;
    this.status = outcome.status;
    this.method = outcome.method;
    this.delay = outcome.delay;
    this.retry = outcome.retry ?? true;
    this.observed = outcome.observed ?? true;
    Object.freeze(this);
  }

  /**
   * The same result, and the object is visited again after a delay, unless
   * something else makes it run earlier. From `onError` it replaces the retry.
   *
   * @param delay Milliseconds or a text such as `"10s"`; zero runs again at
   * once, behind whatever waits already.
   * @throws {RangeError | SyntaxError} If it is not a duration.
   */
  rescheduleAfter(delay: Duration): ReconcileResult<Status, Resource> {
    return new ReconcileResult({
      ...this,
      delay: milliseconds(delay, "rescheduleAfter"),
    });
  }

  /**
   * The same result, and the error is final: the run counts as failed, but is
   * not retried until something changes or the maximal interval has passed.
   * Only `onError` can decide that; from `reconcile` it changes nothing.
   */
  withoutRetry(): ReconcileResult<Status, Resource> {
    return new ReconcileResult({ ...this, retry: false });
  }
}

/** What `cleanup` returns. */
export class CleanupResult {
  /** Whether the finalizer goes now, so that the object can vanish. */
  readonly finalizerRemoved: boolean;
  /** When to run again, in milliseconds from the end of the run. */
  readonly delay: number | undefined;

  /**
   * Makes a result; the functions of this module read better.
   *
   * @param outcome What the run asks for.
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
   * The same result, and cleanup runs again after a delay.
   *
   * @param delay Milliseconds or a text such as `"10s"`.
   * @throws {TypeError} If the finalizer is removed: there is nothing left to
   * visit.
   */
  rescheduleAfter(delay: Duration): CleanupResult {
    if (this.finalizerRemoved) {
      throw new TypeError(
        "Cannot reschedule a cleanup that removes the finalizer: nothing is left to visit: use keepFinalizer().rescheduleAfter(…)",
      );
    }
    return new CleanupResult({
      finalizerRemoved: false,
      delay: milliseconds(delay, "rescheduleAfter"),
    });
  }
}

const OBSERVED_RULES: OptionRules<ObservedOption> = { observed: "boolean?" };
const RESULT_RULES: OptionRules<ResultOptions> = {
  ...OBSERVED_RULES,
  method: ["apply", "merge", "json", "replace", undefined],
};

/** Refuses what a run cannot write. */
function checkWrite(
  subject: string,
  { options, ...parts }: {
    readonly resource?: object;
    readonly status?: object;
    readonly options: ResultOptions;
  },
): void {
  for (const [name, part] of Object.entries(parts)) {
    checkOption(part, "object", { name, subject });
  }
  checkOptions(options, RESULT_RULES, subject);
}

const NO_UPDATE: ReconcileResult<never, never> = new ReconcileResult({});
const REMOVE_FINALIZER: CleanupResult = new CleanupResult({
  finalizerRemoved: true,
});
const KEEP_FINALIZER: CleanupResult = new CleanupResult({
  finalizerRemoved: false,
});

/**
 * Writes nothing but the observed generation, where the status has one. Returning
 * nothing means the same.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of another type.
 */
export function noUpdate(
  options?: ObservedOption,
): ReconcileResult<never, never> {
  if (options === undefined) return NO_UPDATE;
  checkOptions(options, OBSERVED_RULES, "noUpdate()");
  return new ReconcileResult<never, never>({ observed: options.observed });
}

/**
 * Writes the status through its subresource.
 *
 * @param status The fields that the controller wants to own, all of them.
 * @throws {TypeError | RangeError} If a part is no object, or an option is unknown
 * or of another type.
 *
 * @example Report and look again later
 * ```ts
 * import { patchStatus } from "@coracle/operator/core";
 *
 * const result = patchStatus({ ready: false }).rescheduleAfter("10s");
 * if (result.delay !== 10_000) throw new Error("Unexpected delay");
 * ```
 */
export function patchStatus<const Status extends object>(
  status: Status,
  options: ResultOptions = {},
): ReconcileResult<Status, never> {
  checkWrite("patchStatus()", { status, options });
  return new ReconcileResult<Status, never>({
    status,
    ...options,
  });
}

/**
 * Writes fields of the object itself, such as labels or parts of the spec. The
 * finalizer of the framework is kept without being named.
 *
 * @param resource The fields that the controller wants to own, all of them.
 * @throws {TypeError | RangeError} If a part is no object, or an option is unknown
 * or of another type.
 *
 * @example Label the object itself
 * ```ts
 * import { patchResource } from "@coracle/operator/core";
 *
 * const labels = { "sample.coracle.dev/size": "large" };
 * const result = patchResource({ metadata: { labels } });
 * if (result.resource?.metadata.labels !== labels) throw new Error("Unexpected");
 * ```
 */
export function patchResource<const Resource extends object>(
  resource: Resource,
  options: ResultOptions = {},
): ReconcileResult<never, Resource> {
  checkWrite("patchResource()", { resource, options });
  return new ReconcileResult<never, Resource>({
    resource,
    ...options,
  });
}

/**
 * Writes fields of the object and then its status: two requests.
 *
 * @param resource The fields of the object that the controller wants to own.
 * @param status The fields of the status that the controller wants to own.
 * @throws {TypeError | RangeError} If a part is no object, or an option is unknown
 * or of another type.
 */
export function patchResourceAndStatus<
  const Resource extends object,
  const Status extends object,
>(
  resource: Resource,
  status: Status,
  options: ResultOptions = {},
): ReconcileResult<Status, Resource> {
  const subject = "patchResourceAndStatus()";
  checkWrite(subject, { resource, status, options });
  return new ReconcileResult<Status, Resource>({
    resource,
    status,
    ...options,
  });
}

/** Ends a cleanup: the finalizer goes, and the object may vanish. */
export function removeFinalizer(): CleanupResult {
  return REMOVE_FINALIZER;
}

/**
 * Holds the object: cleanup runs again on the next event, or after the delay
 * given with `rescheduleAfter`.
 *
 * @example Not gone yet
 * ```ts
 * import { keepFinalizer } from "@coracle/operator/core";
 *
 * const result = keepFinalizer().rescheduleAfter("5s");
 * if (result.delay !== 5_000) throw new Error("Unexpected delay");
 * ```
 */
export function keepFinalizer(): CleanupResult {
  return KEEP_FINALIZER;
}
