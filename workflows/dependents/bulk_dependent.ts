import type { Kind } from "../../core/api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import type { Dependent, DependentResult } from "./dependent.ts";
import {
  dependentSource,
  type DependentSourceOptions,
} from "./kubernetes_dependent.ts";
import { type KeepOptions, ObjectKeeper } from "./object_keeper.ts";

/** Options of {@linkcode bulkDependent}. */
export interface BulkDependentOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends KeepOptions, DependentSourceOptions<P, S> {
  /**
   * The objects as they should be; what is there beyond them is deleted. Left
   * out, the objects are only read.
   *
   * @default {read only}
   */
  readonly desired?:
    | ((
      primary: P,
      ctx: Context<P>,
    ) => MaybePromise<Iterable<ApplyObject<S>>>)
    | undefined;
}

/**
 * Any number of objects of one kind for each primary, kept as desired: what is
 * not wanted any more goes first, then each is made or changed.
 *
 * Its resource is a map by `namespace/name`.
 *
 * @param kind The kind of the objects.
 * @param options What they should be.
 */
export function bulkDependent<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: BulkDependentOptions<P, S>,
): Dependent<P, ReadonlyMap<string, S>> {
  const { desired, watch } = options;
  const readOnly = desired === undefined;
  const source = dependentSource(kind, {
    ...options,
    watch: { readOnly, ...watch },
  });
  const keeper = new ObjectKeeper(kind, source, options);
  const read = async (_primary: P, ctx: Context<P>) => {
    const objects = await ctx.secondaries(source);
    return new Map(objects.map((object) => [keyText(keyOf(object)), object]));
  };
  const common = {
    sources: [source],
    garbageCollected: readOnly || keeper.garbageCollected,
    read,
  };
  if (desired === undefined) return common;
  return {
    ...common,
    async reconcile(primary, ctx): Promise<
      DependentResult<ReadonlyMap<string, S>>
    > {
      const wanted = new Map<string, ApplyObject<S>>();
      for (const object of await desired(primary, ctx)) {
        const intent = await keeper.intent(object, ctx);
        wanted.set(keyText(keyOf(intent as unknown as S)), intent);
      }
      for (const [id, object] of await read(primary, ctx)) {
        if (!wanted.has(id)) await keeper.remove(keyOf(object), ctx);
      }
      const resource = new Map<string, S>();
      const operations = new Set<DependentResult<S>["operation"]>();
      for (const [id, intent] of wanted) {
        const result = await keeper.ensure(intent, ctx);
        operations.add(result.operation);
        if (result.resource !== undefined) resource.set(id, result.resource);
      }
      const operation = operations.has("created")
        ? "created"
        : operations.has("updated")
        ? "updated"
        : "none";
      return { operation, resource };
    },
    async delete(primary, ctx) {
      for (const object of (await read(primary, ctx)).values()) {
        await keeper.remove(keyOf(object), ctx);
      }
    },
  };
}
