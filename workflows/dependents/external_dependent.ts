import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/options.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import {
  type DependentResult,
  type ReconciledDependent,
  strongest,
} from "./dependent.ts";
import {
  type ExternalIds,
  type ExternalState,
  ONLY_KEY,
} from "./external_state.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import { SOURCE_PARTS } from "./kubernetes_dependent.ts";

/** A source that can be told of our own writes, as all of this library are. */
export interface ExternalSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** Takes in what our own write has made of a resource. */
  ownExternalWrite?(primary: P, resource: R): void;
  /** Takes out a resource that we deleted ourselves. */
  ownExternalDelete?(primary: P, resource: R): void;
}

/** How resources outside the cluster come and go. */
export interface ExternalOperations<P extends KubernetesObject, D, R> {
  /** Where resources are read from, and what tells of their changes. */
  readonly source: ExternalSource<P, R>;
  /**
   * Whether a resource is what it should be.
   *
   * @default {every field that is asked for is there and equal, as JSON}
   */
  readonly matches?: ((desired: D, actual: R) => boolean) | undefined;
  /** Makes a resource. Left out, none is ever made. */
  readonly create?:
    | ((desired: D, primary: P, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Changes a resource. Left out, none is ever changed. */
  readonly update?:
    | ((desired: D, actual: R, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Deletes a resource. Left out, all are left to themselves. */
  readonly delete?:
    | ((actual: R, primary: P, ctx: Context<P>) => Promise<void>)
    | undefined;
  /**
   * Where the ids of resources are kept.
   *
   * @default {nowhere}
   */
  readonly state?:
    | {
      readonly store: ExternalState<P>;
      readonly id: (resource: R) => string;
    }
    | undefined;
}

/** What the operations on resources outside the cluster must be. */
export const OPERATION_RULES: OptionRules<
  ExternalOperations<never, never, never>
> = {
  source: "object",
  matches: "function?",
  create: "function?",
  update: "function?",
  delete: "function?",
  state: "object?",
};

const STATE_PARTS: OptionRules<
  NonNullable<ExternalOperations<never, never, never>["state"]>
> = { store: "object", id: "function" };
const STORE_PARTS: OptionRules<ExternalState<never>> = {
  read: "function",
  write: "function",
  sources: "array?",
};

/** One resource in a run: whose it is, and which of the primary's. */
export interface ExternalPlace<P extends KubernetesObject> {
  readonly primary: P;
  readonly ctx: Context<P>;
  readonly key: string;
}

/** Keeps resources outside the cluster as desired, one at a time. */
export class ExternalKeeper<P extends KubernetesObject, D, R> {
  readonly #operations: ExternalOperations<P, D, R>;

  /**
   * @param operations How resources come and go.
   * @throws {TypeError | RangeError} If the source is none, or what keeps ids.
   */
  constructor(operations: ExternalOperations<P, D, R>) {
    const { source, state } = operations;
    checkParts(source, SOURCE_PARTS, "an external dependent, source");
    if (state !== undefined) {
      checkParts(state, STATE_PARTS, "an external dependent, state");
      checkParts(state.store, STORE_PARTS, "an external dependent, store");
    }
    this.#operations = operations;
  }

  /** Where resources and their ids are read from; what ids need comes first. */
  get sources(): readonly EventSource<P>[] {
    const { source, state } = this.#operations;
    return [...state?.store.sources ?? [], source];
  }

  /** The ids that are kept; undefined where none are. */
  async ids(primary: P, ctx: Context<P>): Promise<ExternalIds | undefined> {
    return await this.#operations.state?.store.read(primary, ctx);
  }

  /** The id of a resource, where ids are kept. */
  idOf(resource: R): string | undefined {
    return this.#operations.state?.id(resource);
  }

  /** Makes or changes a resource, and remembers its id. */
  async ensure(
    desired: D,
    actual: R | undefined,
    { primary, ctx, key }: ExternalPlace<P>,
  ): Promise<DependentResult<R>> {
    const { source, create, update, matches = isCovered } = this.#operations;
    if (actual === undefined) {
      const resource = await create?.(desired, primary, ctx);
      if (resource === undefined) return { operation: "none", resource };
      await this.#remember(key, resource, { primary, ctx });
      source.ownExternalWrite?.(primary, resource);
      return { operation: "created", resource };
    }
    if (update === undefined || matches(desired, actual)) {
      return { operation: "none", resource: actual };
    }
    const resource = await update(desired, actual, ctx);
    // Some systems change a resource by making another.
    if (this.idOf(resource) !== this.idOf(actual)) {
      await this.#remember(key, resource, { primary, ctx });
    }
    source.ownExternalWrite?.(primary, resource);
    return { operation: "updated", resource };
  }

  /** Deletes a resource, if there is one, and then forgets its id. */
  async remove(
    actual: R | undefined,
    { primary, ctx, key }: ExternalPlace<P>,
  ): Promise<void> {
    const { source, state, delete: remove } = this.#operations;
    if (actual !== undefined) {
      await remove?.(actual, primary, ctx);
      source.ownExternalDelete?.(primary, actual);
    }
    if (state === undefined) return;
    const ids = new Map(await state.store.read(primary, ctx));
    if (ids.delete(key)) await state.store.write(primary, ctx, ids);
  }

  async #remember(
    key: string,
    resource: R,
    { primary, ctx }: Pick<ExternalPlace<P>, "primary" | "ctx">,
  ): Promise<void> {
    const { state } = this.#operations;
    if (state === undefined) return;
    const ids = await state.store.read(primary, ctx);
    await state.store.write(
      primary,
      ctx,
      new Map([...ids, [key, state.id(resource)]]),
    );
  }
}

/** Whether everything that is asked for is there. */
function isCovered(desired: unknown, actual: unknown): boolean {
  if (
    typeof desired !== "object" || desired === null || Array.isArray(desired)
  ) return jsonEquals(desired, actual);
  return typeof actual === "object" && actual !== null &&
    Object.entries(desired).every(([name, value]) =>
      isCovered(value, (actual as Record<string, unknown>)[name])
    );
}

/** Options of {@linkcode externalDependent}. */
export interface ExternalDependentOptions<P extends KubernetesObject, D, R>
  extends ExternalOperations<P, D, R> {
  /** What the resource should be; asked once a run. */
  readonly desired: (primary: P, ctx: Context<P>) => MaybePromise<D>;
  /**
   * Which of the primary's resources this is.
   *
   * @default {the only one}
   */
  readonly select?:
    | ((
      actual: R,
      context: { readonly primary: P; readonly id: string | undefined },
    ) => boolean)
    | undefined;
}

const RULES: OptionRules<ExternalDependentOptions<never, never, never>> = {
  ...OPERATION_RULES,
  desired: "function",
  select: "function?",
};

/**
 * A resource outside the cluster for each primary, kept as desired by functions
 * of yours. What they return goes into the source's cache at once.
 *
 * @param options Where it is read from and how it comes and goes.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 *
 * @example A record of a name server
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
 * if (flow.sources[0]?.name !== "records") throw new Error("Unexpected source");
 * ```
 */
export function externalDependent<P extends KubernetesObject, D, R>(
  options: ExternalDependentOptions<P, D, R>,
): ReconciledDependent<P, R> {
  checkOptions(options, RULES, "externalDependent()");
  const { source, select, state } = options;
  const keeper = new ExternalKeeper(options);
  const read = async (primary: P, ctx: Context<P>): Promise<R | undefined> => {
    const id = (await keeper.ids(primary, ctx))?.get(ONLY_KEY);
    const found = (await ctx.secondaries(source)).filter((actual) =>
      select === undefined
        ? state === undefined || keeper.idOf(actual) === id
        : select(actual, { primary, id })
    );
    if (found.length > 1) {
      throw new RangeError(
        `Cannot choose an outside resource: "select" must leave one: received ${found.length} from "${source.name}"`,
      );
    }
    return found[0];
  };
  const dependent: ReconciledDependent<P, R> = {
    sources: keeper.sources,
    read,
    async reconcile(primary, ctx) {
      const desired = await options.desired(primary, ctx);
      const actual = await read(primary, ctx);
      const place = { primary, ctx, key: ONLY_KEY };
      return await keeper.ensure(desired, actual, place);
    },
  };
  if (options.delete === undefined) return dependent;
  return {
    ...dependent,
    async delete(primary, ctx) {
      const actual = await read(primary, ctx);
      await keeper.remove(actual, { primary, ctx, key: ONLY_KEY });
    },
  };
}

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

const BULK_RULES: OptionRules<
  ExternalBulkDependentOptions<never, never, never>
> = {
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
  checkOptions(options, BULK_RULES, "externalBulkDependent()");
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
