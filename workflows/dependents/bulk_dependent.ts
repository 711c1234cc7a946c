import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import { type Dependent, type KeptDependent, strongest } from "./dependent.ts";
import {
  dependentSource,
  type DependentSourceOptions,
  readOnly,
  SOURCE_RULES,
} from "./kubernetes_dependent.ts";
import {
  type CompareOptions,
  KEEP_RULES,
  type KeepOptions,
  ObjectKeeper,
  type Wish,
} from "./object_keeper.ts";

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

const RULES: OptionRules<BulkDependentOptions<never, never>> = {
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
  checkOptions(options, RULES, `a dependent of ${kind.kind}`);
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
