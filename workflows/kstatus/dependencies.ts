import { keyText, type ObjectKey } from "../../core/api/object_key.ts";
import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import { checkOption } from "../../core/api/options.ts";
import type { Context } from "../../core/controller/context.ts";
import { type CelPredicate, celPredicates, firstLine } from "./cel_rules.ts";
import { type Conditioned, isReady } from "../conditions/condition.ts";
import { Stalled, Waiting } from "../conditions/outcome.ts";

/** Reference to a dependency of an object. */
export type DependencyReference = Parameters<typeof requireReady>[1][number];

/** Error for objects that depend on each other in a circle. */
export class DependencyCycleError extends Error {
  /** Keys along the circle, with the first one again at the end. */
  readonly path: readonly string[];

  /**
   * Creates the error.
   *
   * @param path The keys along the circle.
   */
  constructor(path: readonly string[]) {
    super(
      `Cannot order dependencies: they form a cycle: received ${
        path.join(" -> ")
      }`,
    );
    this.name = "DependencyCycleError";
    this.path = path;
  }
}

/**
 * Orders objects so that each follows its dependencies; otherwise the order of
 * the input is kept. A reference without a namespace is in that of the
 * dependent object. The result includes dependencies that are not in the input.
 *
 * @throws {DependencyCycleError} If objects depend on each other in a circle.
 */
export function dependencyOrder(
  objects: readonly {
    readonly key: ObjectKey;
    readonly dependsOn?: readonly DependencyReference[] | undefined;
  }[],
): string[] {
  const edges = new Map<string, readonly string[]>();
  for (const { key, dependsOn = [] } of objects) {
    edges.set(
      keyText(key),
      dependsOn.map(({ namespace = key.namespace, name }) =>
        keyText({ namespace, name })
      ),
    );
  }
  const done = new Set<string>();
  // The keys on the current path, with the number of followed edges: an
  // explicit stack, so that long chains cannot exhaust the call stack.
  const path: { key: string; followed: number }[] = [];
  const open = new Set<string>();
  for (const root of edges.keys()) {
    if (done.has(root)) continue;
    path.push({ key: root, followed: 0 });
    open.add(root);
    while (path.length > 0) {
      const top = path[path.length - 1]!;
      const target = edges.get(top.key)?.[top.followed++];
      if (target === undefined) {
        path.pop();
        open.delete(top.key);
        done.add(top.key);
      } else if (open.has(target)) {
        const keys = path.map(({ key }) => key);
        throw new DependencyCycleError([
          ...keys.slice(keys.indexOf(target)),
          target,
        ]);
      } else if (!done.has(target)) {
        path.push({ key: target, followed: 0 });
        open.add(target);
      }
    }
  }
  return [...done];
}

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
    /** CEL expression that replaces the built-in readiness check. */
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
  let predicate: CelPredicate;
  try {
    [predicate] = await celPredicates([readyExpr]) as [CelPredicate];
  } catch (error) {
    // An invalid expression must be corrected by the user.
    if (!(error instanceof SyntaxError)) throw error;
    throw new Stalled("InvalidExpression", error.message, { cause: error });
  }
  try {
    return predicate({ dep, self })
      ? undefined
      : "is not ready by its expression";
  } catch (error) {
    return `is not ready by its expression: ${firstLine(error)}`;
  }
}
