import { keyText, type ObjectKey } from "../../core/api/object_key.ts";

/** Names an object that another one depends on. */
export interface DependencyReference extends ObjectKey {
  /** A CEL expression that replaces the built-in readiness check. */
  readonly readyExpr?: string | undefined;
}

/** An object and what it depends on. */
export interface DependencyNode {
  /** Which object. */
  readonly key: ObjectKey;
  /**
   * What must be there first.
   *
   * @default {nothing}
   */
  readonly dependsOn?: readonly DependencyReference[] | undefined;
}

/** Objects depend on each other in a circle. */
export class DependencyCycleError extends Error {
  /** The keys along the circle; the first stands again at its end. */
  readonly path: readonly string[];

  /**
   * Says which objects form the circle.
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
 * Orders objects so that each stands behind what it depends on; among equals
 * the order of the input is kept. A reference without a namespace means that of
 * the dependent; names that are not among the input are part of the order too.
 *
 * @throws {DependencyCycleError} If objects depend on each other in a circle.
 *
 * @example A chain
 * ```ts
 * import { dependencyOrder } from "@coracle/operator/workflows";
 *
 * const order = dependencyOrder([
 *   { key: { namespace: "default", name: "web" }, dependsOn: [{ name: "db" }] },
 *   { key: { namespace: "default", name: "db" } },
 * ]);
 * if (order.join() !== "default/db,default/web") throw new Error("Unexpected");
 * ```
 */
export function dependencyOrder(objects: readonly DependencyNode[]): string[] {
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
  // The keys on the way down, each with how many of its edges were followed:
  // a stack of our own, so that long chains cannot exhaust the call stack.
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
 * Reads a dependency from its text: `[namespace/]name[@expression]`.
 *
 * @throws {SyntaxError} If there is no name.
 */
export function parseDependency(text: string): DependencyReference {
  const at = text.indexOf("@");
  const reference = at < 0 ? text : text.slice(0, at);
  const slash = reference.indexOf("/");
  const name = reference.slice(slash + 1);
  if (name === "" || slash === 0) {
    throw new SyntaxError(
      `Cannot read a dependency: it must be "[namespace/]name[@expression]": received "${text}"`,
    );
  }
  return {
    name,
    ...(slash < 0 ? {} : { namespace: reference.slice(0, slash) }),
    ...(at < 0 ? {} : { readyExpr: text.slice(at + 1) }),
  };
}
