import { keyText, type ObjectKey } from "../../core/api/object_key.ts";
import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import { checkOption } from "../../core/api/options.ts";
import type { Context } from "../../core/controller/context.ts";
import { celPredicates, firstLine } from "./cel_rules.ts";
import { type Conditioned, isReady } from "../conditions/condition.ts";
import { Stalled, Waiting } from "../conditions/outcome.ts";

/**
 * Requires that other objects exist and are ready; otherwise it ends the run as
 * a wait. An object is ready when its Ready condition is True for its current
 * generation. If the reference has a `readyExpr`, only the expression decides,
 * with `dep` for the other object and `self` for the dependent one.
 *
 * @param kind The kind of the other objects.
 * @param dependsOn The objects, by default in the namespace of the dependent
 * one.
 * @param step The context of the step; `interval` is the delay of the next run
 * ("30s" by default, as in Flux' helm-controller).
 * @throws {TypeError | RangeError} If the kind or the interval is invalid.
 * @throws {Waiting} If an object is missing or not ready.
 * @throws {Stalled} If an expression is invalid.
 * @throws {Error} If there is an expression and `@marcbachmann/cel-js` is not
 * installed.
 *
 * @example A step that waits for another object
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { requireReady, Waiting } from "@coracle/operator/workflows";
 *
 * const object = { metadata: { namespace: "default", name: "web" } };
 * const ctx = { key: object.metadata, get: () => Promise.resolve(undefined) };
 * try {
 *   await requireReady(ConfigMap, [{ name: "base" }], { object, ctx });
 *   throw new Error("Unexpected success");
 * } catch (error) {
 *   if (!(error instanceof Waiting) || error.after !== 30_000) throw error;
 * }
 * ```
 */
export async function requireReady<D extends Conditioned>(
  kind: Kind<D>,
  dependsOn: readonly (ObjectKey & {
    /**
     * CEL expression that replaces the built-in readiness check; needs the package
     * `@marcbachmann/cel-js`.
     */
    readonly readyExpr?: string | undefined;
  })[],
  step: {
    readonly object: Conditioned;
    readonly ctx: Pick<Context<Conditioned>, "get" | "key">;
    readonly interval?: Duration | undefined;
  },
): Promise<void> {
  const subject = "requireReady()";
  checkKind(kind, subject);
  checkOption(dependsOn, "array", { name: "dependsOn", subject });
  checkOption(step, "object", { name: "step", subject });
  const { object, ctx, interval = "30s" } = step;
  const after = milliseconds(interval, "interval");
  for (const { name, namespace = ctx.key.namespace, readyExpr } of dependsOn) {
    const found = await ctx.get(kind, name, namespace);
    const why = await notReady(found, { self: object, readyExpr });
    if (why === undefined) continue;
    throw new Waiting(
      "DependencyNotReady",
      `${kind.kind} ${keyText({ namespace, name })} ${why}`,
      { after },
    );
  }
}

/** Reason why an object is not ready; undefined if it is. */
async function notReady(
  dep: Conditioned | undefined,
  { self, readyExpr }: {
    readonly self: Conditioned;
    readonly readyExpr: string | undefined;
  },
): Promise<string | undefined> {
  if (dep === undefined) return "does not exist";
  if (readyExpr === undefined) {
    const { observedGeneration, conditions = [] } = dep.status ?? {};
    const isObserved = observedGeneration === dep.metadata.generation;
    return isObserved && isReady(conditions) ? undefined : "is not ready";
  }
  const [predicate] = await celPredicates([readyExpr]).catch((error) => {
    // An invalid expression must be corrected by the user.
    if (!(error instanceof SyntaxError)) throw error;
    throw new Stalled("InvalidExpression", error.message, { cause: error });
  });
  try {
    return predicate!({ dep, self })
      ? undefined
      : "is not ready by its expression";
  } catch (error) {
    return `is not ready by its expression: ${firstLine(error)}`;
  }
}
