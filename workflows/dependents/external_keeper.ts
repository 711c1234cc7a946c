import type { KubernetesObject } from "../../core/api/object.ts";
import { checkParts, type OptionRules } from "../../core/api/option_rules.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/reconciler.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import type { DependentResult } from "./dependent.ts";
import { SOURCE_PARTS } from "./kubernetes_dependent.ts";
import type { ExternalIds, ExternalState } from "./external_state.ts";

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
