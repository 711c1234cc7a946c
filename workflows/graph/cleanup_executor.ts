import type { KubernetesObject } from "../../core/api/object.ts";
import type { Graph } from "./graph.ts";
import type { NodeResult, WorkflowNode } from "./node.ts";
import { NodeRun, type RunContext } from "./node_run.ts";
import { deleteAfter } from "./reconcile_executor.ts";

/**
 * Deletes the nodes in reverse: each when everything that depends on it is gone.
 * What the garbage collector deletes with the primary is left to it; inactive
 * nodes are not touched. A failure keeps what the node depends on; everything
 * else goes on.
 *
 * @returns What became of each node, by name.
 */
export async function cleanUpGraph<P extends KubernetesObject>(
  graph: Graph<WorkflowNode<P>>,
  run: RunContext<P>,
): Promise<Map<string, NodeResult>> {
  const pending = new Map<WorkflowNode<P>, Promise<NodeResult>>();
  for (const node of graph.order.toReversed()) {
    const after = graph.dependentsOf(node)
      .map((dependent) => ({ dependent, result: pending.get(dependent)! }));
    pending.set(
      node,
      deleteAfter(new NodeRun(node, run), after, { run, withPrimary: true }),
    );
  }
  const results = new Map<string, NodeResult>();
  for (const node of graph.order) {
    results.set(node.name, await pending.get(node)!);
  }
  return results;
}
