import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { isJsonObject, jsonEquals } from "../../core/patch/json_value.ts";
import {
  type Dependent,
  type DependentResult,
  type KubernetesDependent,
  reconcileAll,
} from "./dependent.ts";
import { type ExternalState, ONLY_KEY } from "./external_state.ts";
import { SOURCE_PARTS } from "./kubernetes_dependent.ts";

/**
 * Options of {@linkcode externalDependent}.
 *
 * @typeParam P The type of the primaries.
 * @typeParam D The type of the desired state.
 * @typeParam R The type of the resources. Defaults to that of the desired state.
 */
export interface ExternalDependentOptions<
  P extends KubernetesObject,
  D,
  R = D,
> {
  /**
   * Event source from which resources are read, and that reports their changes.
   * The two optional methods update its cache after own writes and deletions;
   * all sources of this library that cache have them.
   */
  readonly source: EventSource<P, R> & {
    ownExternalWrite?(primary: P, resource: R): void;
    ownExternalDelete?(primary: P, resource: R): void;
  };
  /** Desired state of the resource; computed once a run. */
  readonly desired: (primary: P, ctx: Context<P>) => MaybePromise<D>;
  /**
   * Selects the resource among those of the primary. By default the primary has
   * a single one, or the one with the stored id.
   */
  readonly select?:
    | ((
      actual: R,
      context: { readonly primary: P; readonly id: string | undefined },
    ) => boolean)
    | undefined;
  /**
   * Whether a resource matches its desired state. By default every desired field
   * must be present and equal, as JSON.
   */
  readonly matches?: ((desired: D, actual: R) => boolean) | undefined;
  /** Creates a resource. Without it none is created. */
  readonly create?:
    | ((desired: D, primary: P, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Updates a resource. Without it none is updated. */
  readonly update?:
    | ((desired: D, actual: R, primary: P, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Deletes a resource. Without it none is deleted. */
  readonly delete?:
    | ((actual: R, primary: P, ctx: Context<P>) => Promise<void>)
    | undefined;
  /** Store for the ids of resources. By default ids are not stored. */
  readonly state?:
    | {
      readonly store: ExternalState<P>;
      readonly id: (resource: R) => string;
    }
    | undefined;
}

type ExternalResourceOptions<P extends KubernetesObject, D, R> = Omit<
  ExternalDependentOptions<P, D, R>,
  "desired" | "select"
>;

const RULES: OptionRules<ExternalDependentOptions<never, never, never>> = {
  source: "object",
  desired: "function",
  matches: "function?",
  create: "function?",
  update: "function?",
  delete: "function?",
  state: "object?",
  select: "function?",
};
const { select: _select, ...SHARED_RULES } = RULES;
const BULK_RULES: OptionRules<
  Parameters<typeof externalBulkDependent<never, never, never>>[0]
> = { ...SHARED_RULES, desired: "function?", key: "function?" };
const STATE_PARTS: OptionRules<
  NonNullable<ExternalResourceOptions<never, never, never>["state"]>
> = { store: "object", id: "function" };
const STORE_PARTS: OptionRules<ExternalState<never>> = {
  read: "function",
  write: "function",
  sources: "array?",
};

/**
 * Creates a dependent that is a resource outside the cluster for each primary,
 * kept in its desired state by the given functions. The states that they return
 * are put into the source's cache immediately.
 *
 * @param options The event source, and the operations on the resource.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 *
 * @example A DNS record
 * ```ts
 * import { perResourcePollingSource } from "@coracle/operator/sources";
 * import { externalDependent, Workflow } from "@coracle/operator/workflows";
 *
 * const records = new Map<string, string>();
 * const flow = new Workflow().add(
 *   "record",
 *   externalDependent({
 *     source: perResourcePollingSource({
 *       name: "records",
 *       fetch: ({ metadata: { name } }) => {
 *         const address = records.get(name);
 *         return address === undefined ? [] : [{ name, address }];
 *       },
 *     }),
 *     desired: ({ metadata: { name } }) => ({ name, address: "192.0.2.1" }),
 *     create: (record) => {
 *       records.set(record.name, record.address);
 *       return Promise.resolve(record);
 *     },
 *   }),
 * );
 * ```
 */
export function externalDependent<P extends KubernetesObject, D, R = D>(
  options: ExternalDependentOptions<P, D, R>,
): Dependent<P, R> & Pick<KubernetesDependent<P, R>, "sources" | "reconcile"> {
  checkOptions(options, RULES, "externalDependent()");
  const { source, select, state } = options;
  const one = externalResources(options, {
    desired: async (primary, ctx) =>
      new Map([[ONLY_KEY, await options.desired(primary, ctx)]]),
    keyed(actual, { primary, ids }) {
      const id = ids?.get(ONLY_KEY);
      const found = actual.filter((resource) =>
        select === undefined
          ? state === undefined || state.id(resource) === id
          : select(resource, { primary, id })
      );
      if (found.length > 1) {
        throw new RangeError(
          `Cannot select an external resource: "select" must leave one: received ${found.length} from "${source.name}"`,
        );
      }
      return found.map((resource) => [ONLY_KEY, resource]);
    },
  });
  return {
    ...one,
    async read(primary, ctx) {
      return (await one.read(primary, ctx)).get(ONLY_KEY);
    },
    async reconcile(primary, ctx) {
      const { operation, resource } = await one.reconcile(primary, ctx);
      return { operation, resource: resource?.get(ONLY_KEY) };
    },
  };
}

/**
 * Creates a dependent that is any number of resources outside the cluster for
 * each primary: resources that are no longer desired are deleted first, then
 * each desired one is created or updated. Its resource is a map by key.
 *
 * @param options The event source, and the operations on a resource, as of
 * {@linkcode externalDependent}.
 * @throws {TypeError} If an option is unknown, missing or of another type, or
 * neither `key` nor `state` identifies the resources.
 *
 * @example The DNS records of a site
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
 * ```
 */
export function externalBulkDependent<P extends KubernetesObject, D, R = D>(
  options: Omit<ExternalDependentOptions<P, D, R>, "desired" | "select"> & {
    /**
     * Desired states by keys of the user's choice; any further resources of the
     * primary are deleted. Without it the resources are only read.
     */
    readonly desired?:
      | ((primary: P, ctx: Context<P>) => MaybePromise<ReadonlyMap<string, D>>)
      | undefined;
    /**
     * Key of an existing resource. Defaults to the key under which its id is
     * stored.
     */
    readonly key?: ((actual: R) => string) | undefined;
  },
):
  & Dependent<P, ReadonlyMap<string, R>>
  & Pick<
    KubernetesDependent<P, ReadonlyMap<string, R>>,
    "sources" | "reconcile"
  > {
  checkOptions(options, BULK_RULES, "externalBulkDependent()");
  const { source, desired, state, key } = options;
  if (key === undefined && state === undefined) {
    throw new TypeError(
      `Cannot reconcile external resources: "key" or "state" must identify the resources of "${source.name}"`,
    );
  }
  return externalResources(options, {
    desired,
    // A resource whose id is not stored has the id as key.
    keyed(actual, { ids }) {
      const keys = new Map(Array.from(ids ?? [], ([name, id]) => [id, name]));
      return actual.map((resource) => {
        const id = state?.id(resource) ?? "";
        return [key?.(resource) ?? keys.get(id) ?? id, resource];
      });
    },
  });
}

/** Reconciles and deletes resources outside the cluster, and stores their ids. */
function externalResources<P extends KubernetesObject, D, R>(
  options: ExternalResourceOptions<P, D, R>,
  { desired, keyed }: {
    /** Desired states by key; without it the resources are only read. */
    readonly desired:
      | ((primary: P, ctx: Context<P>) => MaybePromise<ReadonlyMap<string, D>>)
      | undefined;
    readonly keyed: (
      actual: readonly R[],
      context: {
        readonly primary: P;
        /** Stored ids by key; undefined if ids are not stored. */
        readonly ids: ReadonlyMap<string, string> | undefined;
      },
    ) => readonly (readonly [key: string, resource: R])[];
  },
):
  & Pick<
    KubernetesDependent<P, ReadonlyMap<string, R>>,
    "sources" | "reconcile"
  >
  & {
    read(primary: P, ctx: Context<P>): Promise<ReadonlyMap<string, R>>;
    delete?(primary: P, ctx: Context<P>): Promise<void>;
  } {
  const { source, state, create, update, matches = isCovered } = options;
  const { delete: deleteResource } = options;
  checkParts(source, SOURCE_PARTS, "an external dependent, source");
  if (state !== undefined) {
    checkParts(state, STATE_PARTS, "an external dependent, state");
    checkParts(state.store, STORE_PARTS, "an external dependent, store");
  }
  const read = async (primary: P, ctx: Context<P>) => {
    const ids = await state?.store.read(primary, ctx);
    return new Map(keyed(await ctx.secondaries(source), { primary, ids }));
  };

  /** Stores the id of a resource, or removes it if there is none. */
  const storeId = async (
    { primary, ctx, key }: ExternalContext<P>,
    resource: R | undefined,
  ) => {
    if (state === undefined) return;
    const ids = new Map(await state.store.read(primary, ctx));
    if (resource !== undefined) ids.set(key, state.id(resource));
    else if (!ids.delete(key)) return;
    await state.store.write(ids, primary, ctx);
  };

  const reconcileOne = async (
    wanted: D,
    actual: R | undefined,
    context: ExternalContext<P>,
  ): Promise<DependentResult<R>> => {
    const { primary, ctx } = context;
    const isNew = actual === undefined;
    if (!isNew && (update === undefined || matches(wanted, actual))) {
      return { operation: "none", resource: actual };
    }
    const resource = isNew
      ? await create?.(wanted, primary, ctx)
      : await update?.(wanted, actual, primary, ctx);
    if (resource === undefined) return { operation: "none", resource };
    // Some systems replace a resource in order to change it.
    if (isNew || state?.id(resource) !== state?.id(actual)) {
      await storeId(context, resource);
    }
    source.ownExternalWrite?.(primary, resource);
    return { operation: isNew ? "created" : "updated", resource };
  };

  /** Deletes a resource, if it exists, and then its stored id. */
  const deleteOne = async (
    actual: R | undefined,
    context: ExternalContext<P>,
  ) => {
    const { primary, ctx } = context;
    if (actual !== undefined) {
      await deleteResource?.(actual, primary, ctx);
      source.ownExternalDelete?.(primary, actual);
    }
    await storeId(context, undefined);
  };

  return {
    sources: [...state?.store.sources ?? [], source],
    read,
    async reconcile(primary, ctx) {
      const wanted = await desired?.(primary, ctx);
      const found = await read(primary, ctx);
      if (wanted === undefined) return { operation: "none", resource: found };
      for (const [key, actual] of found) {
        if (wanted.has(key) || deleteResource === undefined) continue;
        await deleteOne(actual, { primary, ctx, key });
      }
      return await reconcileAll(
        wanted,
        (one, key) => reconcileOne(one, found.get(key), { primary, ctx, key }),
      );
    },
    ...(desired !== undefined && deleteResource !== undefined && {
      async delete(primary: P, ctx: Context<P>) {
        for (const [key, actual] of await read(primary, ctx)) {
          await deleteOne(actual, { primary, ctx, key });
        }
        // Resources that were deleted before may still have a stored id.
        const ids = await state?.store.read(primary, ctx);
        for (const key of ids?.keys() ?? []) {
          await deleteOne(undefined, { primary, ctx, key });
        }
      },
    }),
  };
}

/** One resource in a run: its primary, and its key among the primary's. */
interface ExternalContext<P extends KubernetesObject> {
  readonly primary: P;
  readonly ctx: Context<P>;
  readonly key: string;
}

/** Whether all desired fields are present and equal. */
function isCovered(desired: unknown, actual: unknown): boolean {
  if (!isJsonObject(desired)) return jsonEquals(desired, actual);
  return isJsonObject(actual) &&
    Object.entries(desired).every(([name, value]) =>
      isCovered(value, actual[name])
    );
}
