import type { KubernetesObject } from "../../core/api/object.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import type { Dependent } from "./dependent.ts";

/**
 * Where the id of an outside resource is kept, for systems that give ids of
 * their own: written right after the resource was made, so that a crash cannot
 * make it twice, and removed after it was deleted.
 */
export interface ExternalState<P extends KubernetesObject> {
  /** The id, or undefined if there is none. */
  read(primary: P, ctx: Context<P>): MaybePromise<string | undefined>;
  /** Keeps the id. */
  write(primary: P, ctx: Context<P>, id: string): Promise<void>;
  /** Forgets the id. */
  clear(primary: P, ctx: Context<P>): Promise<void>;
  /** The sources that it reads from. @default {[]} */
  readonly sources?: readonly EventSource<P>[] | undefined;
}

/** Options of {@linkcode externalDependent}. */
export interface ExternalDependentOptions<P extends KubernetesObject, D, R> {
  /** Where the resource is read from, and what tells of its changes. */
  readonly source: EventSource<P, R> & {
    ownExternalWrite?(primary: P, resource: R): void;
    ownExternalDelete?(primary: P, id?: string): void;
  };
  /** What the resource should be; asked once a run. */
  readonly desired: (primary: P, ctx: Context<P>) => MaybePromise<D>;
  /**
   * Whether a resource is what it should be.
   *
   * @default {every field that is asked for is there and equal, as JSON}
   */
  readonly matches?: ((desired: D, actual: R) => boolean) | undefined;
  /** Which of the primary's resources this is. @default {the only one} */
  readonly select?:
    | ((
      actual: R,
      context: { readonly primary: P; readonly id: string | undefined },
    ) => boolean)
    | undefined;
  /** Makes the resource. Left out, it is never made. */
  readonly create?:
    | ((desired: D, primary: P, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Changes the resource. Left out, it is never changed. */
  readonly update?:
    | ((desired: D, actual: R, ctx: Context<P>) => Promise<R>)
    | undefined;
  /** Deletes the resource. Left out, it is left to itself. */
  readonly delete?:
    | ((actual: R, primary: P, ctx: Context<P>) => Promise<void>)
    | undefined;
  /** Where the id of the resource is kept. @default {nowhere} */
  readonly state?:
    | {
      readonly store: ExternalState<P>;
      readonly id: (resource: R) => string;
    }
    | undefined;
}

/**
 * A resource outside the cluster for each primary, kept as desired by functions
 * of yours. What they return goes into the source's cache at once.
 *
 * @param options Where it is read from and how it comes and goes.
 */
export function externalDependent<P extends KubernetesObject, D, R>(
  options: ExternalDependentOptions<P, D, R>,
): Dependent<P, R> {
  const { source, state, matches = isCovered, select } = options;
  const read = async (primary: P, ctx: Context<P>): Promise<R | undefined> => {
    const id = await state?.store.read(primary, ctx);
    const found = (await ctx.secondaries(source)).filter((actual) =>
      select === undefined
        ? state === undefined || state.id(actual) === id
        : select(actual, { primary, id })
    );
    if (found.length > 1) {
      throw new RangeError(
        `Cannot choose an outside resource: "select" must leave one: received ${found.length} from "${source.name}"`,
      );
    }
    return found[0];
  };
  const dependent: Dependent<P, R> = {
    sources: [...state?.store.sources ?? [], source],
    read,
    async reconcile(primary, ctx) {
      const desired = await options.desired(primary, ctx);
      const actual = await read(primary, ctx);
      if (actual === undefined) {
        if (options.create === undefined) {
          return { operation: "none", resource: undefined };
        }
        const resource = await options.create(desired, primary, ctx);
        await state?.store.write(primary, ctx, state.id(resource));
        source.ownExternalWrite?.(primary, resource);
        return { operation: "created", resource };
      }
      if (options.update === undefined || matches(desired, actual)) {
        return { operation: "none", resource: actual };
      }
      const resource = await options.update(desired, actual, ctx);
      source.ownExternalWrite?.(primary, resource);
      return { operation: "updated", resource };
    },
  };
  const remove = options.delete;
  if (remove === undefined) return dependent;
  return {
    ...dependent,
    async delete(primary, ctx) {
      const actual = await read(primary, ctx);
      if (actual !== undefined) {
        await remove(actual, primary, ctx);
        source.ownExternalDelete?.(primary, state?.id(actual));
      }
      await state?.store.clear(primary, ctx);
    },
  };
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
