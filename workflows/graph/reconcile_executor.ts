import type { KubernetesObject } from "../../core/api/object.ts";
import type { Graph } from "./graph.ts";
import type { NodeResult, WorkflowNode } from "./node.ts";
import { NodeRun, type RunContext } from "./node_run.ts";

const OTHERWISE = { otherwise: true } as const;
const NOT_OTHERWISE = { otherwise: false } as const;

/** What was decided for a node before any deletion. */
type Decision =
  | { readonly then: "keep"; readonly result: NodeResult }
  | { readonly then: "delete" }
  | { readonly then: "inactive"; readonly result: NodeResult };

/**
 * Brings the nodes in line, each when all that it depends on is ready, as many
 * at once as the graph and the limit allow.
 *
 * - A failure stops what depends on the node; everything else goes on.
 * - A node whose `reconcileWhen` is false is deleted, and before it, from the
 *   leaves, whatever depends on it, whether or not its other dependencies are
 *   ready. What depends on an inactive node is deleted in the same way.
 * - A node that is waiting is neither asked nor touched.
 *
 * @returns What became of each node, by name.
 */
export async function reconcileGraph<P extends KubernetesObject>(
  graph: Graph<WorkflowNode<P>>,
  run: RunContext<P>,
): Promise<Map<string, NodeResult>> {
  const runs = new Map(
    graph.order.map((node) => [node, new NodeRun(node, run)]),
  );
  const decisions = new Map<WorkflowNode<P>, Promise<Decision>>();
  for (const node of graph.order) {
    const decision = decide(runs.get(node)!, graph.dependenciesOf(node), {
      decisions,
      limited: run.limited,
    });
    decisions.set(node, decision);
  }
  const results = new Map<string, NodeResult>();
  for (const node of graph.order) {
    const made = await decisions.get(node)!;
    if (made.then !== "delete") results.set(node.name, made.result);
  }
  // Mostly everything is wanted.
  if (results.size === graph.order.length) return results;
  const deletions = new Map<WorkflowNode<P>, Promise<NodeResult>>();
  for (const node of graph.order.toReversed()) {
    const after = graph.dependentsOf(node).map((dependent) => ({
      dependent,
      result: deletions.get(dependent)!,
    }));
    deletions.set(
      node,
      conclude(runs.get(node)!, decisions.get(node)!, { after, run }),
    );
  }
  for (const node of graph.order) {
    results.set(node.name, await deletions.get(node)!);
  }
  return results;
}

/** Decides for a node, and does its work, once all before it have been. */
async function decide<P extends KubernetesObject>(
  node: NodeRun<P>,
  dependencies: readonly WorkflowNode<P>[],
  { decisions, limited }: {
    readonly decisions: ReadonlyMap<WorkflowNode<P>, Promise<Decision>>;
    readonly limited: RunContext<P>["limited"];
  },
): Promise<Decision> {
  let waitingFor: string[] | undefined;
  let unwanted = false;
  for (const dependency of dependencies) {
    // The order makes sure that it has its promise already.
    const made = await decisions.get(dependency)!;
    if (made.then !== "keep") unwanted = true;
    else if (!isReady(made.result)) (waitingFor ??= []).push(dependency.name);
  }
  if (unwanted) return { then: "delete" };
  if (waitingFor !== undefined) {
    return { then: "keep", result: node.result("waiting", { waitingFor }) };
  }
  return await limited(() => bringInLine(node));
}

/** Does the work of a node that need not wait, if it is wanted. */
async function bringInLine<P extends KubernetesObject>(
  node: NodeRun<P>,
): Promise<Decision> {
  try {
    // Conditions that are not there cost nothing.
    if (node.has("activeWhen") && !await node.isActive()) {
      return { then: "inactive", result: node.result("inactive") };
    }
    if (node.has("skipWhen") && await node.holds("skipWhen", NOT_OTHERWISE)) {
      return { then: "keep", result: node.result("skipped") };
    }
    if (
      node.has("reconcileWhen") &&
      !await node.holds("reconcileWhen", OTHERWISE)
    ) return { then: "delete" };
    return { then: "keep", result: await node.reconcile() };
  } catch (error) {
    return { then: "keep", result: node.result("failed", { error }) };
  }
}

async function conclude<P extends KubernetesObject>(
  node: NodeRun<P>,
  decision: Promise<Decision>,
  { after, run }: {
    readonly after: readonly {
      readonly dependent: WorkflowNode<P>;
      readonly result: Promise<NodeResult>;
    }[];
    readonly run: RunContext<P>;
  },
): Promise<NodeResult> {
  const made = await decision;
  if (made.then !== "delete") return made.result;
  return await deleteAfter(node, after, { run, withPrimary: false });
}

/**
 * Deletes a node once everything that depends on it is gone. Shared with the
 * cleanup of a whole graph.
 */
export async function deleteAfter<P extends KubernetesObject>(
  node: NodeRun<P>,
  after: readonly {
    readonly dependent: { readonly name: string };
    readonly result: Promise<NodeResult>;
  }[],
  { run, withPrimary }: {
    readonly run: RunContext<P>;
    readonly withPrimary: boolean;
  },
): Promise<NodeResult> {
  const waitingFor: string[] = [];
  for (const { dependent, result } of after) {
    const { state } = await result;
    if (state !== "deleted" && state !== "inactive") {
      waitingFor.push(dependent.name);
    }
  }
  if (waitingFor.length > 0) return node.result("deleting", { waitingFor });
  return await run.limited(async () => {
    try {
      return await node.isActive()
        ? await node.delete(withPrimary)
        : node.result("inactive");
    } catch (error) {
      return node.result("failed", { error });
    }
  });
}

function isReady({ state }: NodeResult): boolean {
  return state === "reconciled" || state === "skipped";
}
