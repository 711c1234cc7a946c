import { checkKind, type Kind, kindText } from "../../core/api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../core/api/object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/options.ts";
import { isPromise } from "../../core/tracing.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { watch } from "../../sources/watch_source.ts";
import type { WatchSourceOptions } from "../../sources/watch_source_options.ts";
import { byAnnotation } from "../../sources/mappers.ts";
import { type Dependent, type KeptDependent, strongest } from "./dependent.ts";
import {
  type CompareOptions,
  KEEP_RULES,
  type KeepOptions,
  ObjectKeeper,
  type Wish,
} from "./dependent_resource.ts";

/** Where dependents of the cluster are read from. */
export interface DependentSourceOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
> {
  /**
   * A source to share, for several dependents of one kind.
   *
   * @default {one of its own, by owner references or annotations}
   */
  readonly source?: EventSource<P, S> | undefined;
  /**
   * How the source of its own watches.
   *
   * @default {as watch() does}
   */
  readonly watch?: WatchSourceOptions<P, S> | undefined;
}

/** Options of {@linkcode kubernetesDependent}. */
export interface KubernetesDependentOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends KeepOptions, CompareOptions<S>, DependentSourceOptions<P, S> {
  /**
   * The object as it should be; asked at most once a run. Say only what you
   * want to own: the server keeps what others own.
   */
  readonly desired: (
    primary: P,
    ctx: Context<P>,
  ) => MaybePromise<ApplyObject<S>>;
  /**
   * The key of the object, where asking for the desired state alone to learn it
   * would be too much, as when it is deleted.
   *
   * @default {that of the desired object}
   */
  readonly key?: ((primary: P) => ObjectKey) | undefined;
}

/** What the options must be that say where a dependent is read from. */
export const SOURCE_RULES: OptionRules<DependentSourceOptions<never, never>> = {
  source: "object?",
  watch: "object?",
};
/** What an event source must have. */
export const SOURCE_PARTS: OptionRules<
  Pick<EventSource<never>, "name" | "start">
> = { name: "name", start: "function" };
const READ_RULES = { ...SOURCE_RULES, key: "function?" } as const;
const RULES: OptionRules<KubernetesDependentOptions<never, never>> = {
  ...KEEP_RULES,
  ...SOURCE_RULES,
  desired: "function",
  key: "function?",
};

/**
 * One object in the cluster for each primary, kept as desired by server-side
 * apply. While nothing of ours has changed, it costs no request.
 *
 * It is deleted with its primary by Kubernetes, unless its relation is one by
 * annotations: then cleanup deletes it.
 *
 * @param kind The kind of the object.
 * @param options What it should be.
 * @throws {TypeError | RangeError} If the kind is none, or an option is unknown,
 * missing or makes no sense.
 *
 * @example A ConfigMap of a page
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { kubernetesDependent, Workflow } from "@coracle/operator/workflows";
 *
 * const flow = new Workflow().add(
 *   "html",
 *   kubernetesDependent(ConfigMap, {
 *     desired: ({ metadata: { name, namespace } }) => ({
 *       metadata: { name, namespace },
 *       data: { "index.html": "<h1>Hello</h1>" },
 *     }),
 *   }),
 * );
 * if (flow.sources.length !== 1) throw new Error("Unexpected sources");
 * ```
 */
export function kubernetesDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: KubernetesDependentOptions<P, S>,
): KeptDependent<P, S> & { readonly source: EventSource<P, S> } {
  checkKind(kind, "a dependent");
  checkOptions(options, RULES, `a dependent of ${kind.kind}`);
  const source = dependentSource(kind, options);
  const keeper = new ObjectKeeper(kind, source, options);
  // Mostly nothing has to be waited for, and then nothing is.
  const wish = (primary: P, ctx: Context<P>): MaybePromise<Wish<S>> => {
    const known = ctx.attributes.get(keeper) as
      | MaybePromise<Wish<S>>
      | undefined;
    if (known !== undefined) return known;
    const desired = options.desired(primary, ctx);
    const made = isPromise(desired)
      ? desired.then((object) => keeper.wish(object, { primary, ctx }))
      : keeper.wish(desired, { primary, ctx });
    ctx.attributes.set(keeper, made);
    return made;
  };
  const key = async (primary: P, ctx: Context<P>) =>
    options.key?.(primary) ?? (await wish(primary, ctx)).key;
  return {
    source,
    sources: [source],
    garbageCollected: keeper.garbageCollected,
    read: async (primary, ctx) =>
      await keeper.read(await key(primary, ctx), ctx),
    reconcile: async (primary, ctx) => {
      const wished = wish(primary, ctx);
      const kept = keeper.ensure(
        isPromise(wished) ? await wished : wished,
        ctx,
      );
      return isPromise(kept) ? await kept : kept;
    },
    delete: async (primary, ctx) =>
      await keeper.remove(await key(primary, ctx), ctx),
  };
}

/**
 * An object in the cluster that is only read: others make it.
 *
 * @param kind The kind of the object.
 * @param options Where it is read from; by default the one secondary of the
 * source.
 * @throws {TypeError | RangeError} If the kind is none, or an option is unknown
 * or makes no sense.
 *
 * @example Wait for what somebody else makes
 * ```ts
 * import { Secret } from "@coracle/operator/kinds";
 * import { readOnlyDependent, Workflow } from "@coracle/operator/workflows";
 *
 * const certificate = readOnlyDependent(Secret, {
 *   key: ({ metadata: { namespace, name } }) => ({
 *     ...(namespace && { namespace }),
 *     name: `${name}-tls`,
 *   }),
 * });
 * const flow = new Workflow().add("certificate", certificate, {
 *   readyWhen: ({ resource }) => resource?.data?.["tls.crt"] !== undefined,
 * });
 * if (flow.sources.length !== 1) throw new Error("Unexpected sources");
 * ```
 */
export function readOnlyDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: DependentSourceOptions<P, S> & {
    readonly key?: ((primary: P) => ObjectKey) | undefined;
  } = {},
): Dependent<P, S> {
  checkKind(kind, "a dependent");
  checkOptions(options, READ_RULES, `a dependent of ${kind.kind}`);
  const source = dependentSource(kind, readOnly(options));
  return {
    sources: [source],
    garbageCollected: true,
    read: async (primary, ctx) =>
      options.key === undefined
        ? await ctx.secondary(source)
        : await source.get?.(options.key(primary)),
  };
}

/** The same options, with a source that says that nothing is written. */
export function readOnly<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(options: DependentSourceOptions<P, S>): DependentSourceOptions<P, S> {
  return { ...options, watch: { readOnly: true, ...options.watch } };
}

/** How many sources were made for dependents of a kind, by its name. */
const made: Map<string, number> = new Map();

/** Sources of one controller need different names, in the order they are made. */
function nextName(kind: Kind): string {
  const name = kindText(kind);
  const number = (made.get(name) ?? 0) + 1;
  made.set(name, number);
  return number === 1 ? name : `${name} (${number})`;
}

/**
 * The source that a dependent shares, or one of its own.
 *
 * @throws {TypeError | RangeError} If it is none.
 */
export function dependentSource<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options:
    & DependentSourceOptions<P, S>
    & Pick<KeepOptions, "relation">,
): EventSource<P, S> {
  const { source } = options;
  if (source !== undefined) {
    checkParts(source, SOURCE_PARTS, `a dependent of ${kind.kind}, source`);
    return source;
  }
  return watch(kind, {
    name: nextName(kind),
    ...(options.relation === "annotations" && { mapper: byAnnotation() }),
    ...options.watch,
  });
}

/** Options of {@linkcode bulkDependent}. */
export interface BulkDependentOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends KeepOptions, CompareOptions<S>, DependentSourceOptions<P, S> {
  /** The objects as they should be; what is there beyond them is deleted. */
  readonly desired: (
    primary: P,
    ctx: Context<P>,
  ) => MaybePromise<Iterable<ApplyObject<S>>>;
}

const BULK_RULES: OptionRules<BulkDependentOptions<never, never>> = {
  ...KEEP_RULES,
  ...SOURCE_RULES,
  desired: "function",
};

/**
 * Any number of objects of one kind for each primary, kept as desired: what is
 * not wanted any more goes first, then each is made or changed.
 *
 * Its resource is a map by `namespace/name`. A source that is shared must hold
 * nothing for the primary but what this dependent makes.
 *
 * @param kind The kind of the objects.
 * @param options What they should be.
 * @throws {TypeError | RangeError} If the kind is none, or an option is unknown,
 * missing or makes no sense.
 *
 * @example One ConfigMap for each page of a book
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { bulkDependent, Workflow } from "@coracle/operator/workflows";
 *
 * const flow = new Workflow().add(
 *   "pages",
 *   bulkDependent(ConfigMap, {
 *     desired: ({ metadata: { name } }) =>
 *       [1, 2, 3].map((page) => ({ metadata: { name: `${name}-${page}` } })),
 *   }),
 *   { readyWhen: ({ resource }) => resource?.size === 3 },
 * );
 * if (flow.sources.length !== 1) throw new Error("Unexpected sources");
 * ```
 */
export function bulkDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: BulkDependentOptions<P, S>,
): KeptDependent<P, ReadonlyMap<string, S>> {
  checkKind(kind, "a dependent");
  checkOptions(options, BULK_RULES, `a dependent of ${kind.kind}`);
  const { desired } = options;
  const source = dependentSource(kind, options);
  const keeper = new ObjectKeeper(kind, source, options);
  const read = reader(source);
  return {
    sources: [source],
    garbageCollected: keeper.garbageCollected,
    read,
    async reconcile(primary, ctx) {
      const wanted = new Map<string, Wish<S>>();
      for (const object of await desired(primary, ctx)) {
        const wish = await keeper.wish(object, { primary, ctx });
        wanted.set(keyText(wish.key), wish);
      }
      for (const [id, object] of await read(primary, ctx)) {
        if (!wanted.has(id)) await keeper.remove(keyOf(object), ctx);
      }
      const resource = new Map<string, S>();
      let operation = strongest();
      for (const [id, wish] of wanted) {
        const result = await keeper.ensure(wish, ctx);
        operation = strongest(operation, result.operation);
        if (result.resource !== undefined) resource.set(id, result.resource);
      }
      return { operation, resource };
    },
    async delete(primary, ctx) {
      for (const object of (await read(primary, ctx)).values()) {
        await keeper.remove(keyOf(object), ctx);
      }
    },
  };
}

/**
 * Any number of objects in the cluster that are only read: others make them. Its
 * resource is a map by `namespace/name`.
 *
 * @param kind The kind of the objects.
 * @param options Where they are read from.
 * @throws {TypeError | RangeError} If the kind is none, or an option is unknown,
 * missing or makes no sense.
 */
export function readOnlyBulkDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: DependentSourceOptions<P, S> = {},
): Dependent<P, ReadonlyMap<string, S>> {
  checkKind(kind, "a dependent");
  checkOptions(options, SOURCE_RULES, `a dependent of ${kind.kind}`);
  const source = dependentSource(kind, readOnly(options));
  return { sources: [source], garbageCollected: true, read: reader(source) };
}

/** Reads the secondaries of a source by their keys. */
function reader<P extends KubernetesObject, S extends KubernetesObject>(
  source: EventSource<P, S>,
): (primary: P, ctx: Context<P>) => Promise<ReadonlyMap<string, S>> {
  return async (_primary, ctx) => {
    const objects = await ctx.secondaries(source);
    return new Map(objects.map((object) => [keyText(keyOf(object)), object]));
  };
}
