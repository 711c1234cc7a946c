import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import { type ReconciledDependent, strongest } from "./dependent.ts";
import {
  ExternalKeeper,
  type ExternalOperations,
  OPERATION_RULES,
} from "./external_keeper.ts";

/** Options of {@linkcode externalBulkDependent}. */
export interface ExternalBulkDependentOptions<
  P extends KubernetesObject,
  D,
  R,
> extends ExternalOperations<P, D, R> {
  /**
   * What the resources should be, by keys of your choice; what is there beyond
   * them is deleted. Left out, they are only read.
   *
   * @default {read only}
   */
  readonly desired?:
    | ((primary: P, ctx: Context<P>) => MaybePromise<ReadonlyMap<string, D>>)
    | undefined;
  /**
   * The key of a resource that is there; where ids are kept, they tell.
   *
   * @default {that under which its id is kept}
   */
  readonly key?: ((actual: R) => string) | undefined;
}

const RULES: OptionRules<ExternalBulkDependentOptions<never, never, never>> = {
  ...OPERATION_RULES,
  desired: "function?",
  key: "function?",
};

/**
 * Any number of resources outside the cluster for each primary, kept as desired:
 * what is not wanted any more goes first, then each is made or changed.
 *
 * Its resource is a map by the keys.
 *
 * @param options Where they are read from and how they come and go.
 * @throws {TypeError} If an option is unknown, missing or of another type, or
 * neither `key` nor `state` tells which resource is which.
 *
 * @example The records of a name server
 * ```ts
 * import { pollingSource } from "@coracle/operator/sources";
 * import { externalBulkDependent, Workflow } from "@coracle/operator/workflows";
 *
 * interface Address {
 *   readonly host: string;
 *   readonly address: string;
 * }
 *
 * const records = new Map<string, Address>();
 * const flow = new Workflow().add(
 *   "records",
 *   externalBulkDependent({
 *     source: pollingSource({
 *       name: "records",
 *       id: ({ host }: Address) => host,
 *       fetch: () => new Map([["default/site", [...records.values()]]]),
 *     }),
 *     key: ({ host }) => host,
 *     desired: () => new Map([["www", { host: "www", address: "192.0.2.1" }]]),
 *     create(record) {
 *       records.set(record.host, record);
 *       return Promise.resolve(record);
 *     },
 *     delete({ host }) {
 *       records.delete(host);
 *       return Promise.resolve();
 *     },
 *   }),
 * );
 * if (flow.sources[0]?.name !== "records") throw new Error("Unexpected source");
 * ```
 */
export function externalBulkDependent<P extends KubernetesObject, D, R>(
  options: ExternalBulkDependentOptions<P, D, R>,
): ReconciledDependent<P, ReadonlyMap<string, R>> {
  checkOptions(options, RULES, "externalBulkDependent()");
  const { source, desired, state, key } = options;
  if (key === undefined && state === undefined) {
    throw new TypeError(
      `Cannot keep outside resources: "key" or "state" must tell which is which: received neither for "${source.name}"`,
    );
  }
  const keeper = new ExternalKeeper(options);
  /** The resources by key; those that nobody knows have their id as key. */
  const read = async (primary: P, ctx: Context<P>) => {
    const ids = await keeper.ids(primary, ctx);
    const keys = new Map(Array.from(ids ?? [], ([name, id]) => [id, name]));
    const keyOf = (actual: R) => {
      const id = keeper.idOf(actual);
      return key?.(actual) ?? keys.get(id ?? "") ?? id ?? "";
    };
    return new Map(
      (await ctx.secondaries(source)).map((actual) => [keyOf(actual), actual]),
    );
  };
  const dependent: ReconciledDependent<P, ReadonlyMap<string, R>> = {
    sources: keeper.sources,
    read,
    async reconcile(primary, ctx) {
      const wanted = await desired?.(primary, ctx);
      const actual = await read(primary, ctx);
      if (wanted === undefined) return { operation: "none", resource: actual };
      for (const [name, resource] of actual) {
        if (wanted.has(name) || options.delete === undefined) continue;
        await keeper.remove(resource, { primary, ctx, key: name });
      }
      const resource = new Map<string, R>();
      let operation = strongest();
      for (const [name, wish] of wanted) {
        const place = { primary, ctx, key: name };
        const result = await keeper.ensure(wish, actual.get(name), place);
        operation = strongest(operation, result.operation);
        if (result.resource !== undefined) resource.set(name, result.resource);
      }
      return { operation, resource };
    },
  };
  if (desired === undefined || options.delete === undefined) return dependent;
  return {
    ...dependent,
    async delete(primary, ctx) {
      for (const [name, resource] of await read(primary, ctx)) {
        await keeper.remove(resource, { primary, ctx, key: name });
      }
      // What was gone already may still have its id.
      for (const name of (await keeper.ids(primary, ctx))?.keys() ?? []) {
        await keeper.remove(undefined, { primary, ctx, key: name });
      }
    },
  };
}
