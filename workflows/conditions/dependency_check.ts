import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import { keyText } from "../../core/api/object_key.ts";
import { checkOption } from "../../core/api/option_rules.ts";
import type { Context } from "../../core/controller/reconciler.ts";
import { type CelPredicate, celPredicates } from "../kstatus/cel_expression.ts";
import { isReady } from "./condition.ts";
import type { DependencyReference } from "./dependency_order.ts";
import { Stalled, Waiting } from "./outcome.ts";
import type { Conditioned } from "./status_lint.ts";

/** Options of {@linkcode requireReady}. */
export interface RequireReadyOptions {
  /**
   * How much later to look again; the default is that of Flux' helm-controller.
   *
   * @default {"30s"}
   */
  readonly interval?: Duration | undefined;
}

/** The reason of the wait for a dependency. */
export const DEPENDENCY_NOT_READY = "DependencyNotReady";

/**
 * Waits for other objects: ends the pass, as no failure, unless all are there
 * and ready. One is ready when its Ready is True for the generation that it has
 * now; where the reference has a `readyExpr`, that alone decides, with `dep` for
 * the other object and `self` for the dependent one.
 *
 * @param kind The kind of the others.
 * @param dependsOn Which ones; without a namespace that of the dependent.
 * @param pass The step that asks.
 * @throws {TypeError | RangeError} If the kind is none, or the interval no
 * duration.
 * @throws {Waiting} If one is missing or not ready.
 * @throws {Stalled} If an expression cannot be read.
 *
 * @example A step that waits for others
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { isOutcome, requireReady } from "@coracle/operator/workflows";
 *
 * const object = { metadata: { namespace: "default", name: "web" } };
 * const ctx = { key: object.metadata, get: () => Promise.resolve(undefined) };
 * try {
 *   await requireReady(ConfigMap, [{ name: "base" }], { object, ctx });
 *   throw new Error("Unexpected success");
 * } catch (error) {
 *   if (!isOutcome(error, "waiting") || error.after !== 30_000) throw error;
 * }
 * ```
 */
export async function requireReady<D extends Conditioned>(
  kind: Kind<D>,
  dependsOn: readonly DependencyReference[],
  pass: RequireReadyOptions & {
    readonly object: Conditioned;
    readonly ctx: Pick<Context<Conditioned>, "get" | "key">;
  },
): Promise<void> {
  const subject = "requireReady()";
  checkKind(kind, subject);
  checkOption(dependsOn, "array", { name: "dependsOn", subject });
  checkOption(pass, "object", { name: "pass", subject });
  const { object, ctx, interval = "30s" } = pass;
  const after = milliseconds(interval, "interval");
  for (const { name, namespace = ctx.key.namespace, readyExpr } of dependsOn) {
    const found = await ctx.get(kind, name, namespace);
    const why = await notReady(found, { self: object, readyExpr });
    if (why === undefined) continue;
    throw new Waiting(
      DEPENDENCY_NOT_READY,
      `${kind.kind} ${keyText({ namespace, name })} ${why}`,
      { after },
    );
  }
}

/** Why an object is not ready; undefined if it is. */
async function notReady(
  dep: Conditioned | undefined,
  { self, readyExpr }: {
    readonly self: Conditioned;
    readonly readyExpr: string | undefined;
  },
): Promise<string | undefined> {
  if (dep === undefined) return "is not there";
  if (readyExpr === undefined) {
    const { observedGeneration, conditions = [] } = dep.status ?? {};
    const isObserved = observedGeneration === dep.metadata.generation;
    return isObserved && isReady(conditions) ? undefined : "is not ready";
  }
  const isSo = await predicateOf(readyExpr);
  try {
    return isSo({ dep, self }) ? undefined : "is not ready by its expression";
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return `is not ready by its expression: ${message.split("\n")[0]}`;
  }
}

/** The expression of a person, who must correct it if it cannot be read. */
async function predicateOf(readyExpr: string): Promise<CelPredicate> {
  try {
    const [predicate] = await celPredicates([readyExpr]);
    return predicate!;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Stalled("InvalidExpression", error.message, { cause: error });
  }
}
