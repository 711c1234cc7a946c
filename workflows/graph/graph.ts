/** A node of a graph, as far as its order is concerned. */
export interface GraphNode {
  /** Unique within the graph. */
  readonly name: string;
  /** The names of the nodes that come before it. */
  readonly dependsOn: readonly string[];
}

/** A graph is not one that can be run. */
export class GraphError extends Error {
  /** The nodes along the cycle, the first one again at the end; else empty. */
  readonly cycle: readonly string[];

  /**
   * Says what is wrong with the graph.
   *
   * @param message What is wrong.
   * @param cycle The nodes along the cycle.
   */
  constructor(message: string, cycle: readonly string[] = []) {
    super(message);
    this.name = "GraphError";
    this.cycle = cycle;
  }
}

/**
 * A directed graph without cycles, checked when it is made.
 *
 * Invariant: {@linkcode Graph.order} names every node once, each behind all that
 * it depends on.
 *
 * @typeParam N The type of the nodes.
 */
export class Graph<N extends GraphNode> {
  /** The nodes, each behind what it depends on. */
  readonly order: readonly N[];
  readonly #dependents: ReadonlyMap<string, readonly N[]>;
  readonly #dependencies: ReadonlyMap<string, readonly N[]>;

  /**
   * Checks and orders the nodes.
   *
   * @param nodes The nodes, in any order.
   * @throws {GraphError} If two have one name, one depends on a name that is
   * none, or some depend on each other in a circle.
   */
  constructor(nodes: Iterable<N>) {
    const byName = new Map<string, N>();
    for (const node of nodes) {
      if (byName.has(node.name)) {
        throw new GraphError(
          `Cannot define a workflow: node names must be unique: received "${node.name}" twice`,
        );
      }
      byName.set(node.name, node);
    }
    const dependents = new Map<string, N[]>();
    const dependencies = new Map<string, N[]>();
    for (const node of byName.values()) {
      const before: N[] = [];
      dependencies.set(node.name, before);
      for (const name of new Set(node.dependsOn)) {
        const dependency = byName.get(name);
        if (dependency === undefined) {
          throw new GraphError(
            `Cannot define a workflow: "${node.name}" depends on a node that does not exist: received "${name}", known are ${
              [...byName.keys()].join(", ")
            }`,
          );
        }
        before.push(dependency);
        const list = dependents.get(name) ?? [];
        list.push(node);
        dependents.set(name, list);
      }
    }
    this.#dependents = dependents;
    this.#dependencies = dependencies;
    this.order = orderNodes(byName);
  }

  /** The nodes that depend on a node, directly. */
  dependentsOf(node: N): readonly N[] {
    return this.#dependents.get(node.name) ?? [];
  }

  /** The nodes that a node depends on, directly. */
  dependenciesOf(node: N): readonly N[] {
    return this.#dependencies.get(node.name) ?? [];
  }
}

/** Depth first, in the order of definition, so that the order is stable. */
function orderNodes<N extends GraphNode>(nodes: ReadonlyMap<string, N>): N[] {
  const done = new Set<N>();
  const path: N[] = [];
  const visit = (node: N) => {
    if (done.has(node)) return;
    const start = path.indexOf(node);
    if (start >= 0) {
      const cycle = [...path.slice(start), node].map(({ name }) => name);
      throw new GraphError(
        `Cannot define a workflow: nodes depend on each other in a circle: received ${
          cycle.join(" -> ")
        }`,
        cycle,
      );
    }
    path.push(node);
    for (const name of node.dependsOn) visit(nodes.get(name)!);
    path.pop();
    done.add(node);
  };
  for (const node of nodes.values()) visit(node);
  return [...done];
}
