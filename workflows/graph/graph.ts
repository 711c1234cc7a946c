import type { NodeResult, NodeState } from "./node.ts";

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
 * Validates the nodes of a graph, and orders them depth first, in the order of
 * definition: each node follows its dependencies.
 *
 * @throws {GraphError} If two nodes have the same name, a dependency is
 * unknown, or nodes depend on each other in a circle.
 */
export function orderNodes<N extends GraphNode>(nodes: Iterable<N>): N[] {
  const byName = new Map<string, N>();
  for (const node of nodes) {
    if (byName.has(node.name)) {
      throw new GraphError(
        `Cannot define a workflow: node names must be unique: received "${node.name}" twice`,
      );
    }
    byName.set(node.name, node);
  }
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
    for (const name of node.dependsOn) {
      const dependency = byName.get(name);
      if (dependency === undefined) {
        throw new GraphError(
          `Cannot define a workflow: "${node.name}" depends on a node that does not exist: received "${name}", known are ${
            [...byName.keys()].join(", ")
          }`,
        );
      }
      addNode(dependency);
    }
    path.pop();
    done.add(node);
  };
  for (const node of byName.values()) addNode(node);
  return [...done];
}

/** Fill color of a node by its state. */
const COLORS: Readonly<Record<NodeState, string>> = {
  reconciled: "#c8e6c9",
  notReady: "#fff3c4",
  waiting: "#eceff1",
  skipped: "#e1f5fe",
  inactive: "#f5f5f5",
  deleted: "#d7ccc8",
  deleting: "#ffe0b2",
  failed: "#ffcdd2",
};

/**
 * Renders a graph as a Mermaid flowchart, with the state of each node if the
 * results of a run are given.
 */
export function mermaid(
  nodes: readonly GraphNode[],
  results?: ReadonlyMap<string, NodeResult>,
): string {
  const id = new Map(nodes.map(({ name }, index) => [name, `n${index}`]));
  const lines = ["flowchart TD"];
  for (const { name } of nodes) {
    const state = results?.get(name)?.state;
    const text = state === undefined ? name : `${name}<br/>${state}`;
    const style = state === undefined ? "" : `:::${state}`;
    lines.push(`  ${id.get(name)}["${escape(text)}"]${style}`);
  }
  for (const { name, dependsOn } of nodes) {
    for (const dependency of new Set(dependsOn)) {
      lines.push(`  ${id.get(dependency)} --> ${id.get(name)}`);
    }
  }
  const states = new Set(
    [...results?.values() ?? []].map(({ state }) => state),
  );
  for (const state of states) {
    lines.push(`  classDef ${state} fill:${COLORS[state]}`);
  }
  return `${lines.join("\n")}\n`;
}

function escape(text: string): string {
  return text.replaceAll('"', "#quot;");
}
