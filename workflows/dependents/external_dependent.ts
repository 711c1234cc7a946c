import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import type { ReconciledDependent } from "./dependent.ts";
import {
  ExternalKeeper,
  type ExternalOperations,
  OPERATION_RULES,
} from "./external_keeper.ts";
import { ONLY_KEY } from "./external_state.ts";

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
