export interface GraphNode {
  readonly name: string;
  readonly dependsOn: readonly string[];
}

/** Error for a graph that cannot be executed. */
export class GraphError extends Error {
  /**
   * Nodes along the cycle, with the first one again at the end; empty if there
   * is no cycle.
   */
  readonly cycle: readonly string[];

  constructor(message: string, cycle: readonly string[] = []) {
    super(message);
    this.name = "GraphError";
    this.cycle = cycle;
  }
}

/**
 * Directed acyclic graph, validated by its constructor.
 *
 * Invariant: {@linkcode Graph.order} has every node once, after all its
 * dependencies.
 */
export class Graph<N extends GraphNode> {
  /** Nodes in an order in which each follows its dependencies. */
  readonly order: readonly N[];
  readonly #dependents: Map<N, readonly N[]> = new Map();
  readonly #dependencies: Map<N, readonly N[]> = new Map();

  /**
   * Validates and orders the nodes.
   *
   * @throws {GraphError} If two nodes have the same name, a dependency is
   * unknown, or nodes depend on each other in a circle.
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
    for (const node of byName.values()) {
      const before = [...new Set(node.dependsOn)].map((name) => {
        const dependency = byName.get(name);
        if (dependency !== undefined) return dependency;
        throw new GraphError(
          `Cannot define a workflow: "${node.name}" depends on a node that does not exist: received "${name}", known are ${
            [...byName.keys()].join(", ")
          }`,
        );
      });
      this.#dependencies.set(node, before);
      for (const dependency of before) {
        const after = this.#dependents.get(dependency) ?? [];
        this.#dependents.set(dependency, [...after, node]);
      }
    }
    this.order = orderNodes(byName);
  }

  dependentsOf(node: N): readonly N[] {
    return this.#dependents.get(node) ?? [];
  }

  dependenciesOf(node: N): readonly N[] {
    return this.#dependencies.get(node) ?? [];
  }
}

/**
 * Orders the nodes depth first, in the order of definition, so that the order
 * is stable.
 */
function orderNodes<N extends GraphNode>(nodes: ReadonlyMap<string, N>): N[] {
  const done = new Set<N>();
  const path: N[] = [];
  const addNode = (node: N) => {
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
    for (const name of node.dependsOn) addNode(nodes.get(name)!);
    path.pop();
    done.add(node);
  };
  for (const node of nodes.values()) addNode(node);
  return [...done];
}
