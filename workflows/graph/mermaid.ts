import type { GraphNode } from "./graph.ts";
import type { NodeResult, NodeState } from "./node.ts";

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
