/**
 * Dependents: resources that belong to a primary, in the cluster or outside,
 * with the operations that reconcile and delete them ({@linkcode Dependent}).
 *
 * An object in the cluster is compared with its desired state before it is
 * written, so that an object that matches costs no request. The folder must not
 * import `graph` or `phases`.
 *
 * @module
 */

import { ApiError } from "../../core/api/api_error.ts";
import type { Duration } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { messageWithCause } from "../../core/error_text.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";

/**
 * Resource that belongs to a primary, with the operations that reconcile it: an
 * object in the cluster, several of them, or something outside the cluster.
 *
 * A workflow calls `reconcile` when all dependencies are ready, and `delete`
 * when the resource is no longer desired. A dependent without `reconcile` is
 * only read; one without `delete` is left to its owner.
 *
 * A dependent also works without a workflow: register its `sources` with the
 * controller, and call it from `reconcile` and, unless it is garbage collected,
 * from `cleanup`. Its writes are visible immediately and cause no further run.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the resource; a map or list for several.
 *
 * @example Without a workflow
 * ```ts
 * import { type ObjectOf, Operator, untyped } from "@coracle/operator";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { kubernetesDependent } from "@coracle/operator/workflows";
 *
 * const Page = untyped({ group: "example.com", version: "v1", kind: "Page" });
 * const html = kubernetesDependent<ObjectOf<typeof Page>, ConfigMap>(
 *   ConfigMap,
 *   {
 *     desired: ({ metadata: { name } }) => ({
 *       metadata: { name },
 *       data: { "index.html": "<h1>Hello</h1>" },
 *     }),
 *   },
 * );
 * const operator = new Operator();
 * operator.register(Page, {
 *   async reconcile(page, ctx) {
 *     const { operation } = await html.reconcile(page, ctx);
 *     if (operation !== "none") ctx.events.normal("HtmlWritten", operation);
 *   },
 * }, { sources: html.sources });
 * ```
 */
export interface Dependent<P extends KubernetesObject, S = unknown> {
  /** Event sources that the resource is read from and that report its changes. */
  readonly sources?: readonly EventSource<P>[] | undefined;
  /**
   * Whether Kubernetes' garbage collector deletes the resource with its primary,
   * so that no cleanup is needed.
   *
   * @default {false}
   */
  readonly garbageCollected?: boolean | undefined;
  /** Reads the resource from the caches. */
  read(primary: P, ctx: Context<P>): S | undefined | Promise<S | undefined>;
  /** Creates or updates the resource to match the desired state. */
  reconcile?(primary: P, ctx: Context<P>): Promise<{
    /** Operation that was performed. */
    readonly operation: "created" | "updated" | "none";
    /** Current state of the resource; undefined if it does not exist. */
    readonly resource: S | undefined;
  }>;
  /** Deletes the resource; a missing resource is no error. */
  delete?(primary: P, ctx: Context<P>): Promise<void>;
  /**
   * Whether the resource is ready after `reconcile`: besides this the `readyWhen` of
   * its node must be met. By default it is.
   */
  readyWhen?(context: {
    /** Primary of the run. */
    readonly primary: P;
    /** Context of the run. */
    readonly ctx: Context<P>;
    /** Current resource of the node; undefined if it does not exist. */
    readonly resource: S | undefined;
  }): MaybePromise<boolean | Verdict>;
  /**
   * Whether the resource is gone after `delete`: besides this the `deletedWhen` of
   * its node must be met. By default it is.
   */
  deletedWhen?(
    context: Parameters<NonNullable<Dependent<P, S>["readyWhen"]>>[0],
  ): MaybePromise<boolean | Verdict>;
}

/** Result of a node condition; the result of the workflow includes it. */
export interface Verdict {
  /** Whether the condition is met. */
  readonly met: boolean;
  /** Human-readable reason, for the condition of the whole workflow. */
  readonly message?: string | undefined;
  /** Additional data for programs. */
  readonly detail?: unknown;
  /**
   * Delay after which the condition is evaluated again, for state whose changes
   * cause no event. By default it is evaluated at the next event.
   */
  readonly recheckAfter?: Duration | undefined;
}

export type DependentResult<S> = Awaited<
  ReturnType<NonNullable<Dependent<KubernetesObject, S>["reconcile"]>>
>;

/** Dependent in the cluster, which is reconciled and can be deleted. */
export interface KubernetesDependent<P extends KubernetesObject, S>
  extends Dependent<P, S> {
  /** Event sources that the resource is read from and that report its changes. */
  readonly sources: readonly EventSource<P>[];
  /** Creates or updates the resource to match the desired state. */
  reconcile(
    primary: P,
    ctx: Context<P>,
  ): ReturnType<NonNullable<Dependent<P, S>["reconcile"]>>;
  /** Deletes the resource; a missing resource is no error. */
  delete(primary: P, ctx: Context<P>): Promise<void>;
}

/** Maximum number of objects of a bulk dependent that are written at the same time. */
export const BULK_CONCURRENCY = 10;

/** Step for one of several resources. */
type Step = () => Promise<void>;

/**
 * Deletes and reconciles several resources, by {@linkcode attemptAll}.
 *
 * @param unwanted Deletions, which come first.
 * @returns The resources that exist, by key, and the combined operation.
 */
export async function reconcileAll<D, S>(
  desired: ReadonlyMap<string, D>,
  { unwanted, reconcile, ...how }: AttemptOptions & {
    readonly unwanted: readonly Step[];
    readonly reconcile: (one: D, key: string) => Promise<DependentResult<S>>;
  },
): Promise<DependentResult<ReadonlyMap<string, S>>> {
  const results = new Map<string, DependentResult<S>>();
  const wanted = Array.from(desired, ([key, one]) => async () => {
    results.set(key, await reconcile(one, key));
  });
  await attemptAll([unwanted, wanted], how);
  const resource = new Map<string, S>();
  for (const key of desired.keys()) {
    const one = results.get(key)?.resource;
    if (one !== undefined) resource.set(key, one);
  }
  return { operation: operationOf(results.values()), resource };
}

/** Operation that stands for those of several resources. */
export function operationOf(
  results: Iterable<DependentResult<unknown>>,
): DependentResult<unknown>["operation"] {
  const operations = new Set(Array.from(results, ({ operation }) => operation));
  return (["created", "updated"] as const)
    .find((one) => operations.has(one)) ?? "none";
}

interface AttemptOptions {
  /** Signal of the run. */
  readonly signal: AbortSignal;
  /**
   * Maximum number of steps that are taken at the same time.
   *
   * @default {1}
   */
  readonly concurrency?: number | undefined;
}

/**
 * Takes steps for several resources, those of one stage after those of the one
 * before. A step that fails does not keep the others from being taken, unless
 * the run was aborted or the server does not answer.
 *
 * @throws {unknown} The error of the step, or an AggregateError of several.
 */
export async function attemptAll(
  stages: readonly (readonly Step[])[],
  { signal, concurrency = 1 }: AttemptOptions,
): Promise<void> {
  const failures: [number, unknown][] = [];
  let isOver = false;
  const take = async (steps: Iterable<[number, Step]>) => {
    for (const [index, step] of steps) {
      if (isOver) return;
      try {
        await step();
      } catch (error) {
        failures.push([index, error]);
        isOver ||= signal.aborted || concernsAll(error);
      }
    }
  };
  const errors: unknown[] = [];
  for (const steps of stages) {
    const rest = steps.entries();
    await Promise.all(Array.from({ length: concurrency }, () => take(rest)));
    failures.sort(([one], [other]) => one - other);
    errors.push(...failures.splice(0).map(([, error]) => error));
  }
  if (errors.length === 0) return;
  if (errors.length === 1) throw errors[0];
  throw new AggregateError(
    errors,
    `${messageWithCause(errors[0])}; and ${errors.length - 1} more failed`,
  );
}

/** Whether the next resource would fail as well: those of a connection have a cause. */
function concernsAll(error: unknown): boolean {
  if (ApiError.is(error)) {
    return error.isUnauthorized || error.isTooManyRequests ||
      error.status >= 500;
  }
  if (!(error instanceof Error) || error.cause === undefined) return false;
  return !ApiError.is(error.cause) || concernsAll(error.cause);
}
