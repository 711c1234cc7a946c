import { fieldSelectorText } from "../../core/api/field_selector.ts";
import { checkKind, type Kind, kindText } from "../../core/api/kind.ts";
import { labelSelectorText } from "../../core/api/label_selector.ts";
import type {
  ApplyObject,
  KubernetesObject,
  WrittenAs,
} from "../../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../core/api/object_key.ts";
import {
  type AnyTable,
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import { getFrom } from "../../core/controller/watch/get_from.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import {
  WatchingSource,
  type WatchSourceOptions,
} from "../../core/controller/watch/watch_source.ts";
import { immediate, isPromise } from "../../core/callback.ts";
import { messageWithCause } from "../../core/error_text.ts";
import {
  attemptAll,
  BULK_CONCURRENCY,
  type Dependent,
  type KubernetesDependent,
  reconcileAll,
} from "./dependent.ts";
import {
  DependentResource,
  type DesiredResource,
  type KubernetesDependentOptions,
} from "./dependent_resource.ts";

type SourceOptions<P extends KubernetesObject, S extends KubernetesObject> =
  Pick<KubernetesDependentOptions<P, S>, "source" | "watch">;

/** Function that returns the desired state of an object with a known type. */
type DesiredState<P extends KubernetesObject, W extends KubernetesObject> =
  KubernetesDependentOptions<P, KubernetesObject, W>["desired"];

const SOURCE_RULES: OptionRules<SourceOptions<never, never>> = {
  source: "object?",
  watch: "object?",
};
export const SOURCE_PARTS: OptionRules<
  Pick<EventSource<never>, "name" | "start">
> = { name: "name", start: "function" };
const READ_RULES = { ...SOURCE_RULES, key: "function?" } as const;
const BULK_RULES: OptionRules<
  Omit<KubernetesDependentOptions<never, never>, "key">
> = {
  ...SOURCE_RULES,
  desired: "function",
  relation: ["owner", "annotations", undefined],
  existing: ["refuse", "adopt", undefined],
  unwanted: ["delete", "orphan", undefined],
  recreate: "boolean?",
  takeOver: "strings?",
  propagationPolicy: ["Background", "Foreground", "Orphan", undefined],
  matches: "function?",
};
const RULES: OptionRules<KubernetesDependentOptions<never, never>> = {
  ...BULK_RULES,
  key: "function?",
};

/**
 * Creates a dependent that is one object in the cluster for each primary, kept
 * in its desired state by server-side apply. While neither the desired state nor
 * the owned fields change, it costs no request.
 *
 * Kubernetes deletes the object with its primary, unless the relation is by
 * annotations: then the cleanup deletes it.
 * An object whose desired name has changed stays until then; a {@linkcode
 * bulkDependent} of one object deletes it at once.
 *
 * @param kind The kind of the object.
 * @param options The desired state, and how it is reconciled.
 * @throws {TypeError | RangeError} If the kind is invalid, or an option is
 * unknown, missing or invalid.
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
 * ```
 */
export function kubernetesDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options:
    & KubernetesDependentOptions<P, S, NoInfer<ApplyObject<S>>>
    & { readonly existing: "adopt" },
): KubernetesDependent<P, S> & { readonly source: EventSource<P, S> };
/**
 * Creates a dependent that is one object in the cluster for each primary. Its
 * desired state has all required fields, so that the object can be created.
 */
export function kubernetesDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
  W extends KubernetesObject = S,
>(
  kind: Kind<S> & WrittenAs<W>,
  options: KubernetesDependentOptions<P, S, NoInfer<W>>,
): KubernetesDependent<P, S> & { readonly source: EventSource<P, S> };
export function kubernetesDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
  W extends KubernetesObject,
>(
  kind: Kind<S>,
  options: Omit<KubernetesDependentOptions<P, S>, "desired"> & {
    readonly desired: DesiredState<P, W>;
  },
): KubernetesDependent<P, S> & { readonly source: EventSource<P, S> } {
  const source = dependentSource(kind, options, RULES);
  const { watch } = options;
  const resource = new DependentResource(kind, source, options);
  const compute = (primary: P, ctx: Context<P>) => {
    try {
      const object = options.desired(primary, ctx);
      return isPromise<object>(object)
        ? Promise.resolve(object).then((one) =>
          resource.desired(one, { primary, ctx })
        )
        : resource.desired(object, { primary, ctx });
    } catch (error) {
      return Promise.reject(error);
    }
  };
  /** Computes the desired state, once a run. */
  const desiredOf = (primary: P, ctx: Context<P>) => {
    const known = ctx.attributes.get(resource) as
      | MaybePromise<DesiredResource<S>>
      | undefined;
    if (known !== undefined) return known;
    const desired = compute(primary, ctx);
    ctx.attributes.set(resource, desired);
    return desired;
  };
  /** Whether the source shows all objects that may be of a primary. */
  const showsAll = options.source === undefined &&
    watch?.mapper === undefined && watch?.references === undefined;
  /** Key of the object; undefined if a primary without any needs no name. */
  const keyOf = async (primary: P, ctx: Context<P>) => {
    const key = immediate(options.key?.(primary), "key()");
    if (key !== undefined) return key;
    const isKnown = ctx.attributes.has(resource) || !showsAll ||
      (await ctx.secondaries(source)).length > 0;
    if (!isKnown) return undefined;
    try {
      return (await desiredOf(primary, ctx)).key;
    } catch (cause) {
      throw new Error(
        `Cannot find the ${kind.kind} of ${ctx.key.name} by its desired state, so give the dependent a "key": received ${
          messageWithCause(cause)
        }`,
        { cause },
      );
    }
  };
  return remembered({ kind, source, watch }, {
    source,
    sources: [source],
    garbageCollected: resource.garbageCollected,
    async read(primary, ctx) {
      const key = await keyOf(primary, ctx);
      return key && await resource.readOwn(key, ctx, primary.metadata.uid);
    },
    // Without a wait, which would cost as much as a comparison.
    reconcile: (primary, ctx) => {
      const desired = desiredOf(primary, ctx);
      return isPromise(desired)
        ? desired.then((one) => resource.reconcile(one, ctx))
        : resource.reconcile(desired, ctx);
    },
    async delete(primary, ctx) {
      const key = await keyOf(primary, ctx);
      if (key) await resource.delete(key, ctx, primary.metadata.uid);
    },
  });
}

/**
 * Creates a dependent that is any number of objects of one kind for each
 * primary: objects that are no longer desired are deleted first, then each
 * desired one is created or updated, ten at the same time. One that the server
 * refuses does not keep the others from it.
 *
 * Its resource is a map by `namespace/name`. All objects of the kind that its
 * event source has for a primary must be its own: where the primary owns others
 * of this kind, give these a label, and set `watch: { labelSelector }`. An object
 * that somebody takes out of that selection is applied again while it is
 * desired; once it is not, it is deleted with the primary only.
 *
 * @param kind The kind of the objects.
 * @param options The desired state, and how it is reconciled.
 * @throws {TypeError | RangeError} If the kind is invalid, or an option is
 * unknown, missing or invalid.
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
 * ```
 */
export function bulkDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
  W extends KubernetesObject = S,
>(
  kind: Kind<S> & WrittenAs<W>,
  options: Omit<KubernetesDependentOptions<P, S>, "desired" | "key"> & {
    /**
     * Desired objects, as a list or as the values of a map; any further ones of
     * the primary are deleted. Objects are identified by name, not by map key.
     */
    readonly desired: S extends unknown ? (
        primary: P,
        ctx: Context<P>,
      ) => MaybePromise<
        | Iterable<
          Awaited<
            ReturnType<
              KubernetesDependentOptions<
                P,
                KubernetesObject,
                NoInfer<W>
              >["desired"]
            >
          >
        >
        | ReadonlyMap<
          string,
          Awaited<
            ReturnType<
              KubernetesDependentOptions<
                P,
                KubernetesObject,
                NoInfer<W>
              >["desired"]
            >
          >
        >
      >
      : never;
  },
): KubernetesDependent<P, ReadonlyMap<string, S>>;
export function bulkDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
  W extends KubernetesObject,
>(
  kind: Kind<S>,
  options: Omit<KubernetesDependentOptions<P, S>, "desired" | "key"> & {
    readonly desired: (
      ...run: Parameters<DesiredState<P, W>>
    ) => MaybePromise<
      | Iterable<Awaited<ReturnType<DesiredState<P, W>>>>
      | ReadonlyMap<string, Awaited<ReturnType<DesiredState<P, W>>>>
    >;
  },
): KubernetesDependent<P, ReadonlyMap<string, S>> {
  const source = dependentSource(kind, options, BULK_RULES);
  const resource = new DependentResource(kind, source, options);
  const read = readerOf(source);
  const { unwanted, watch } = options;
  const deletes = unwanted === "orphan"
    ? "none"
    : options.source !== undefined
    ? "source"
    : SELECTIONS.some((name) => watch?.[name] !== undefined)
    ? "selection"
    : "kind";
  return remembered({ kind, source, watch, deletes }, {
    sources: [source],
    garbageCollected: resource.garbageCollected,
    read,
    async reconcile(primary, ctx) {
      const desired = new Map<string, DesiredResource<S>>();
      const objects = listOf(kind, await options.desired(primary, ctx));
      for (const object of objects) {
        const one = await resource.desired(object, { primary, ctx });
        const id = keyText(one.key);
        if (desired.has(id)) {
          throw new TypeError(
            `Cannot use the desired objects of a bulk dependent of ${kind.kind}: each needs a name of its own: received ${id} twice`,
          );
        }
        desired.set(id, one);
      }
      const { uid } = primary.metadata;
      const unwanted = [...await read(primary, ctx)]
        .filter(([id]) => !desired.has(id))
        .map(([, object]) => () => resource.prune(keyOf(object), ctx, uid));
      return await reconcileAll(desired, {
        unwanted,
        reconcile: (one) => resource.reconcile(one, ctx),
        signal: ctx.signal,
        concurrency: BULK_CONCURRENCY,
      });
    },
    async delete(primary, ctx) {
      const { uid } = primary.metadata;
      const found = Array.from((await read(primary, ctx)).values());
      await attemptAll(
        [found.map((object) => () => resource.delete(keyOf(object), ctx, uid))],
        { signal: ctx.signal, concurrency: BULK_CONCURRENCY },
      );
    },
  });
}

/** Options of a watch that shows a bulk dependent only its own objects. */
const SELECTIONS = [
  "labelSelector",
  "fieldSelector",
  "shardSelector",
  "mapper",
  "references",
] as const;

/** What a dependent writes. */
interface Written {
  readonly kind: Kind;
  readonly source: EventSource<never>;
  readonly watch?: WatchSourceOptions<never, never> | undefined;
  /** Which objects besides its own a bulk dependent would delete. */
  readonly deletes?: "none" | "selection" | "source" | "kind";
}

const written: WeakMap<object, Written> = new WeakMap();

/** Names of sets of objects of any kinds, by their dependents. */
const sets: WeakMap<object, string> = new WeakMap();

/** Notes that a dependent is a set with a name, which its objects have as label. */
export function noteSet(dependent: object, name: string): void {
  sets.set(dependent, name);
}

/** Name of the set that a dependent is; undefined for other dependents. */
export function setOf(dependent: object): string | undefined {
  return sets.get(dependent);
}

function remembered<D extends object>(what: Written, dependent: D): D {
  written.set(dependent, what);
  return dependent;
}

/** Whether a bulk dependent would delete the objects of another dependent. */
export function wouldDelete(bulk: object, other: object): boolean {
  const [a, b] = [written.get(bulk), written.get(other)];
  if (a === undefined || b === undefined || a === b) return false;
  const { deletes = "none" } = a;
  if (deletes === "source") return a.source === b.source;
  return deletes !== "none" && a.kind.kind === b.kind.kind &&
    a.kind.group === b.kind.group &&
    (deletes === "kind" || isSameSelection(a.watch, b.watch));
}

/** Whether two watches select the same objects, as far as their texts show. */
function isSameSelection(
  ...watches: readonly (Written["watch"])[]
): boolean {
  const [a, b] = watches.map((watch) => {
    const { labelSelector = [], fieldSelector = [] } = watch ?? {};
    return JSON.stringify([
      labelSelectorText(labelSelector),
      fieldSelectorText(fieldSelector),
      watch?.shardSelector,
      watch?.namespaces,
    ]);
  });
  const [mine, theirs] = watches;
  return a === b && mine?.mapper === theirs?.mapper &&
    mine?.references === theirs?.references;
}

/** Converts desired objects to a list, from a list or the values of a map. */
function listOf(kind: Kind, objects: unknown): Iterable<object> {
  if (objects instanceof Map) return objects.values();
  if (typeof objects === "object" && objects && Symbol.iterator in objects) {
    return objects as Iterable<object>;
  }
  throw new TypeError(
    `Cannot use the desired objects of a bulk dependent of ${kind.kind}: they must be a list or a map: received ${
      typeText(objects)
    }`,
  );
}

/**
 * Creates a dependent that is an object in the cluster which is only read,
 * because others create it.
 *
 * @param kind The kind of the object.
 * @param options The event source, and the key of the object, which then needs
 * no owner reference. Without a key it is the only secondary of the source.
 * @throws {TypeError | RangeError} If the kind is invalid, or an option is
 * unknown or invalid.
 *
 * @example Wait for a certificate that another operator issues
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
 * ```
 */
export function readOnlyDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: Pick<KubernetesDependentOptions<P, S>, "source" | "watch" | "key"> =
    {},
): Dependent<P, S> {
  const source = dependentSource(kind, options, READ_RULES);
  return {
    sources: [source],
    garbageCollected: true,
    read: async (primary, ctx) =>
      options.key === undefined
        ? await ctx.secondary(source)
        : await getFrom(ctx, source, immediate(options.key(primary), "key()")),
  };
}

/**
 * Creates a dependent on any number of objects in the cluster that others create;
 * they are only read. Its resource is a map by `namespace/name`.
 *
 * @param kind The kind of the objects.
 * @param options The event source.
 * @throws {TypeError | RangeError} If the kind is invalid, or an option is
 * unknown, missing or invalid.
 */
export function readOnlyBulkDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: Pick<KubernetesDependentOptions<P, S>, "source" | "watch"> = {},
): Dependent<P, ReadonlyMap<string, S>> {
  const source = dependentSource(kind, options, SOURCE_RULES);
  return { sources: [source], garbageCollected: true, read: readerOf(source) };
}

function readerOf<P extends KubernetesObject, S extends KubernetesObject>(
  source: EventSource<P, S>,
): (primary: P, ctx: Context<P>) => Promise<ReadonlyMap<string, S>> {
  return async (_primary, ctx) => {
    const objects = await ctx.secondaries(source);
    return new Map(objects.map((object) => [keyText(keyOf(object)), object]));
  };
}

/** Number of event sources that were created for dependents, by kind. */
const sourceCounts: Map<string, number> = new Map();

/** Creates a unique name for an event source. */
function nextName(kind: Kind): string {
  const name = kindText(kind);
  const number = (sourceCounts.get(name) ?? 0) + 1;
  sourceCounts.set(name, number);
  return number === 1 ? name : `${name} (${number})`;
}

/**
 * Returns the shared event source of a dependent, or creates one, which is
 * read-only if the dependent has no desired state.
 */
function dependentSource<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: SourceOptions<P, S> & {
    readonly desired?: unknown;
    readonly key?: ((primary: P) => ObjectKey) | undefined;
    readonly takeOver?: readonly string[] | undefined;
  },
  rules: AnyTable,
): EventSource<P, S> {
  checkKind(kind, "a dependent");
  const subject = `a dependent of ${kind.kind}`;
  checkOptions(options, rules, subject);
  const { source, desired, key, takeOver } = options;
  if (source !== undefined) {
    if (takeOver !== undefined) {
      throw new TypeError(
        `Cannot read the options of ${subject}: "takeOver" is an option of its "source", or of the controller: received ${takeOver}`,
      );
    }
    if (options.watch !== undefined) {
      throw new TypeError(
        `Cannot read the options of ${subject}: "watch" is only for a dependent without "source": received ${
          Object.keys(options.watch).join(", ")
        }`,
      );
    }
    checkParts(source, SOURCE_PARTS, `${subject}, source`);
    return source;
  }
  const made = new WatchingSource(kind, {
    name: nextName(kind),
    ...(desired === undefined && { readOnly: true }),
    // Others make the object, so no owner reference leads to the primary.
    ...(desired === undefined && key && !options.watch?.mapper &&
      { references: (primary: P) => [key(primary)] }),
    ...takeOver !== undefined && { takeOver },
    ...options.watch,
  });
  return made.readOnly ? made : made.usedAs("owns");
}
