import { immediate } from "../../core/callback.ts";
import type { DeepPartial, KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  nearestName,
  type OptionRules,
} from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import { getFrom } from "../../core/controller/watch/get_from.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { statusSchemaOf } from "../../core/crd/check_status.ts";
import { isJsonObject, jsonEquals } from "../../core/patch/json_value.ts";
import {
  attemptAll,
  type Dependent,
  type DependentResult,
  type KubernetesDependent,
  reconcileAll,
} from "./dependent.ts";
import { SOURCE_PARTS } from "./kubernetes_dependent.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import { keyOf } from "../../core/api/object_key.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { watch } from "../../core/controller/watch/watch_source.ts";

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
   * Its optional methods update its cache after writes and deletions by the
   * dependent, which all caching sources of this library have, and make it ask
   * the external system again after a failed write, as the polling sources do.
   */
  readonly source: EventSource<P, R> & {
    ownExternalWrite?(primary: P, resource: R): void;
    ownExternalDelete?(primary: P, resource: R): void;
    ownExternalFailure?(primary: P): void;
  };
  /** Desired state of the resource; computed once a run. */
  readonly desired: (primary: P, ctx: Context<P>) => MaybePromise<D>;
  /**
   * Selects the resource among those of the primary. By default it is the only
   * one, or the one with the stored id.
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
  /** Creates a resource. By default none is created. */
  readonly create?:
    | ((desired: D, primary: P, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Updates a resource. By default none is updated. */
  readonly update?:
    | ((desired: D, actual: R, primary: P, ctx: Context<P>) => Promise<R>)
    | undefined;
  /**
   * Deletes a resource. By default none is deleted. Where that takes time, it
   * returns the resource as it is now, which then exists, for `deletedWhen` as
   * well, until the source no longer has it; each run until then calls it again.
   */
  readonly delete?:
    | ((actual: R, primary: P, ctx: Context<P>) => Promise<R | void>)
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
  const idOf = idReader(state);
  const one = externalResources(options, {
    desired: async (primary, ctx) =>
      new Map([[ONLY_KEY, await options.desired(primary, ctx)]]),
    keyed(actual, { primary, ids }) {
      const id = ids?.get(ONLY_KEY);
      const found = actual.filter((resource) =>
        select === undefined
          ? state === undefined || idOf(resource) === id
          : immediate(select(resource, { primary, id }), "select()")
      );
      if (found.length > 1) {
        throw new RangeError(
          `Cannot select an external resource: ${
            select === undefined
              ? "the primary must have"
              : '"select" must leave'
          } one, and until it does none is changed or deleted: received ${found.length} from "${source.name}"${
            state === undefined ? "" : ` (${found.map(idOf).join(", ")})`
          }`,
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
 * @param options The event source, and the operations on a resource, those
 * of {@linkcode externalDependent}.
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
     * primary are deleted. By default the resources are only read.
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
  if (state !== undefined && storesOfOne.has(state.store)) {
    throw new TypeError(
      `Cannot keep the ids of many resources: the store of "${source.name}" has one id, so use statusState(kind, field, { many: true })`,
    );
  }
  const idOf = idReader(state);
  return externalResources(options, {
    desired,
    // A resource whose id is not stored has the id as key.
    keyed(actual, { ids }) {
      const keys = new Map(Array.from(ids ?? [], ([name, id]) => [id, name]));
      return actual.map((resource) => {
        const id = idOf(resource) ?? "";
        const own = immediate(key?.(resource), "key()");
        return [own ?? keys.get(id) ?? id, resource];
      });
    },
  });
}

/** Function that reads the id of a resource; undefined if ids are not stored. */
function idReader<P extends KubernetesObject, D, R>(
  state: ExternalResourceOptions<P, D, R>["state"],
): (resource: R) => string | undefined {
  return (resource) => immediate(state?.id(resource), "state.id()");
}

/** Creates a dependent on resources outside the cluster, with stored ids. */
function externalResources<P extends KubernetesObject, D, R>(
  options: ExternalResourceOptions<P, D, R>,
  { desired, keyed }: {
    /** Desired states by key; undefined if the resources are only read. */
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
  const idOf = idReader(state);
  checkParts(source, SOURCE_PARTS, "an external dependent, source");
  if (state !== undefined) {
    checkParts(state, STATE_PARTS, "an external dependent, state");
    checkParts(state.store, STORE_PARTS, "an external dependent, store");
  }
  const read = async (primary: P, ctx: Context<P>) => {
    const ids = await state?.store.read(primary, ctx);
    return new Map(keyed(await ctx.secondaries(source), { primary, ids }));
  };

  /** Stores the id of a resource, or removes it without one; writes changes only. */
  const storeId = async (
    { primary, ctx, key }: ExternalContext<P>,
    resource: R | undefined,
  ) => {
    if (state === undefined) return;
    const ids = new Map(await state.store.read(primary, ctx));
    const id = resource && idOf(resource);
    if (ids.get(key) === id) return;
    if (id === undefined) ids.delete(key);
    else ids.set(key, id);
    await state.store.write(ids, primary, ctx);
  };

  const reconcileOne = async (
    wanted: D,
    actual: R | undefined,
    context: ExternalContext<P>,
  ): Promise<DependentResult<R>> => {
    const { primary, ctx } = context;
    const isNew = actual === undefined;
    // `select` and `key` find what a run created that could not store the id.
    if (!isNew) await storeId(context, actual);
    const isEqual = (actual: R) =>
      immediate(matches(wanted, actual), "matches()");
    if (!isNew && (update === undefined || isEqual(actual))) {
      return { operation: "none", resource: actual };
    }
    try {
      const resource = isNew
        ? await create?.(wanted, primary, ctx)
        : await update?.(wanted, actual, primary, ctx);
      if (resource === undefined) return { operation: "none", resource };
      // Some systems replace a resource in order to change it.
      await storeId(context, resource);
      source.ownExternalWrite?.(primary, resource);
      return { operation: isNew ? "created" : "updated", resource };
    } catch (error) {
      // Its answer may be lost: creating it again would make a second one.
      source.ownExternalFailure?.(primary);
      throw error;
    }
  };

  /** Deletes a resource, if it exists, and then its stored id. */
  const deleteOne = async (
    actual: R | undefined,
    context: ExternalContext<P>,
  ) => {
    const { primary, ctx } = context;
    if (actual !== undefined) {
      const left = await deleteResource?.(actual, primary, ctx);
      if (left !== undefined) return source.ownExternalWrite?.(primary, left);
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
      const unwanted = deleteResource === undefined
        ? []
        : [...found].filter(([key]) => !wanted.has(key));
      return await reconcileAll(wanted, {
        unwanted: unwanted.map(([key, actual]) => () =>
          deleteOne(actual, { primary, ctx, key })
        ),
        reconcile: (one, key) =>
          reconcileOne(one, found.get(key), { primary, ctx, key }),
        signal: ctx.signal,
      });
    },
    ...(desired !== undefined && deleteResource !== undefined && {
      async delete(primary: P, ctx: Context<P>) {
        const known = await read(primary, ctx);
        await attemptAll(
          [[...known].map(([key, actual]) => () =>
            deleteOne(actual, { primary, ctx, key })
          )],
          { signal: ctx.signal },
        );
        // Resources that were deleted before may still have a stored id.
        const ids = await state?.store.read(primary, ctx);
        for (const key of ids?.keys() ?? []) {
          if (known.has(key)) continue;
          await deleteOne(undefined, { primary, ctx, key });
        }
      },
    }),
  };
}

/** Context of one resource in a run: its primary, and its key. */
interface ExternalContext<P extends KubernetesObject> {
  readonly primary: P;
  readonly ctx: Context<P>;
  readonly key: string;
}

/** Whether a resource has all desired fields with equal values. */
function isCovered(desired: unknown, actual: unknown): boolean {
  if (!isJsonObject(desired)) return jsonEquals(desired, actual);
  return isJsonObject(actual) &&
    Object.entries(desired).every(([name, value]) =>
      isCovered(value, actual[name])
    );
}

/** Key of a resource that is the only one of its primary. */
const ONLY_KEY = "id";

/**
 * Store for the ids of external resources, for systems that assign ids. An id
 * is written right after the resource was created, so that it is not created
 * twice, and removed after it was deleted.
 */
export interface ExternalState<P extends KubernetesObject> {
  /**
   * Reads the ids by key; an empty map for a primary without resources. A
   * single resource has the key `id`.
   */
  read(primary: P, ctx: Context<P>): MaybePromise<ReadonlyMap<string, string>>;
  /** Replaces the stored ids. */
  write(
    ids: ReadonlyMap<string, string>,
    primary: P,
    ctx: Context<P>,
  ): Promise<void>;
  /**
   * Event sources from which the ids are read.
   *
   * @default {[]}
   */
  readonly sources?: readonly EventSource<P>[] | undefined;
}

/**
 * Creates a store for ids in a ConfigMap that the primary owns.
 *
 * @param suffix The suffix of the ConfigMap's name, after the name of the
 * primary.
 * @throws {TypeError | RangeError} If the suffix is no string, or empty.
 *
 * @example
 * ```ts
 * import { configMapState } from "@coracle/operator/workflows";
 *
 * const state = configMapState("-account");
 * ```
 */
export function configMapState<P extends KubernetesObject>(
  suffix: string,
): ExternalState<P> {
  checkOption(suffix, "name", { name: "suffix", subject: "configMapState()" });
  const source = watch<P, ConfigMap>(ConfigMap, {
    name: `state${suffix}`,
    startPriority: "loader",
  });
  const keyIn = (primary: P) => ({
    name: `${primary.metadata.name}${suffix}`,
    namespace: primary.metadata.namespace,
  });
  return {
    sources: [source],
    async read(primary, ctx) {
      const map = await getFrom(ctx, source, keyIn(primary));
      return new Map(Object.entries(map?.data ?? {}));
    },
    async write(ids, primary, ctx) {
      if (ids.size === 0) await ctx.delete(ConfigMap, keyIn(primary));
      else {
        await ctx.apply(ConfigMap, {
          metadata: keyIn(primary),
          data: Object.fromEntries(ids),
        });
      }
    },
  };
}

/** Stores that have a single id. */
const storesOfOne = new WeakSet<object>();

const STATE_RULES: OptionRules<
  NonNullable<Parameters<typeof statusState>[2]>
> = { many: "boolean?" };

/**
 * Creates a store for ids in a status field of the primary, where they are
 * visible to the next run. A reconciler must leave the field out of its results, so
 * that it is not changed.
 *
 * @param kind The kind of the primaries; their status must have the field.
 * @param field The name of the field.
 * @param options `many` makes the field an object with the id of each resource,
 * instead of a single id as a string (false by default).
 * @throws {TypeError | RangeError} If the kind is invalid, its status has no such
 * field, or one of another type, or an option is unknown or of another type.
 *
 * @example
 * ```ts
 * import { untyped } from "@coracle/operator/core";
 * import { statusState } from "@coracle/operator/workflows";
 *
 * const Database = untyped({ group: "example.com", version: "v1", kind: "Database" });
 * const state = statusState(Database, "accountId");
 * ```
 */
export function statusState<P extends KubernetesObject>(
  kind: Kind<P>,
  field: string,
  options: { readonly many?: boolean | undefined } = {},
): ExternalState<P> {
  const subject = "statusState()";
  checkKind(kind, subject);
  checkOption(field, "name", { name: "field", subject });
  checkOptions(options, STATE_RULES, subject);
  const { many = false } = options;
  checkField(kind, field, many);
  const stored = (primary: P): Readonly<Record<string, unknown>> => {
    const { status } = primary as { readonly status?: unknown };
    const value = isJsonObject(status) ? status[field] : undefined;
    if (many || typeof value !== "string") {
      // A user may have edited the field.
      return isJsonObject(value) ? value : {};
    }
    return { [ONLY_KEY]: value };
  };
  const store: ExternalState<P> = {
    read(primary, ctx) {
      const entries = Object.entries(stored(ctx.current ?? primary));
      return new Map(
        entries.filter((entry): entry is [string, string] =>
          typeof entry[1] === "string" && entry[1] !== ""
        ),
      );
    },
    async write(ids, primary, ctx) {
      const before = Object.keys(stored(ctx.current ?? primary));
      const gone = before.filter((key) => !ids.has(key))
        .map((key) => [key, null]);
      const value = many
        ? Object.fromEntries([...ids, ...gone])
        : ids.get(ONLY_KEY) ?? null;
      // The uid keeps a recreated primary from getting the ids of its
      // predecessor.
      const { uid } = primary.metadata;
      const body: object = { metadata: { uid }, status: { [field]: value } };
      await ctx.patch(kind, keyOf(primary), body as DeepPartial<P>, {
        subresource: "status",
        // The `setStatus` of a reconciler keeps what other managers wrote.
        fieldManager: "coracle-state",
      });
    },
  };
  if (!many) storesOfOne.add(store);
  return store;
}

/** Refuses a field that cannot store ids, before a resource is created. */
function checkField(kind: Kind, field: string, many: boolean): void {
  const schema = statusSchemaOf(kind);
  const isOpen = schema?.["x-kubernetes-preserve-unknown-fields"] === true ||
    isJsonObject(schema?.additionalProperties);
  if (schema === undefined || isOpen) return;
  const { properties = {} } = schema;
  const refuse = (why: string) => {
    throw new TypeError(`Cannot keep ids in status.${field}: ${why}`);
  };
  if (!Object.hasOwn(properties, field)) {
    const nearest = nearestName(field, Object.keys(properties));
    const hint = nearest === undefined ? "" : `, did you mean "${nearest}"?`;
    refuse(`the status of ${kind.kind} has no such field${hint}`);
  }
  if (properties[field]?.type === (many ? "string" : "object")) {
    refuse(
      many
        ? "with { many: true } the field must be an object: received text"
        : "the field must be text, or the option { many: true } set: received an object",
    );
  }
}
