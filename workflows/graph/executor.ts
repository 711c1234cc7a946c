import type { KubernetesObject } from "../../core/api/object.ts";
import type { Context } from "../../core/controller/context.ts";
import type { Activation } from "./activation.ts";
import {
  asVerdict,
  type ConditionName,
  type NodeResult,
  type NodeState,
  type Verdict,
  type WorkflowNode,
} from "./node.ts";
import type { Graph } from "./graph.ts";

/** Context of the execution of a workflow. */
export interface ExecutorContext<P extends KubernetesObject> {
  /** Primary of the run. */
  readonly primary: P;
  /** Context of the run. */
  readonly ctx: Context<P>;
  /** Activation of the nodes. */
  readonly activation: Activation<P>;
  /** Limits how many nodes are processed at the same time. */
  readonly limited: <T>(task: () => Promise<T>) => Promise<T>;
}

/**
 * One node in one run: evaluates its conditions, each at most once, and
 * reconciles or deletes its dependent. It has no knowledge of the other nodes.
 */
export class NodeRun<P extends KubernetesObject> {
  readonly #node: WorkflowNode<P>;
  readonly #run: ExecutorContext<P>;
  readonly #verdicts: Partial<Record<ConditionName, Verdict>> = {};

  /**
   * Prepares the node; nothing is executed.
   *
   * @param node The node.
   * @param run The context of the execution.
   */
  constructor(node: WorkflowNode<P>, run: ExecutorContext<P>) {
    this.#node = node;
    this.#run = run;
  }

  /** Whether the node has a condition of this name. */
  has(name: ConditionName): boolean {
    return this.#node.when[name] !== undefined;
  }

  /** Whether the node is active; if so, its sources have synced. */
  async isActive(): Promise<boolean> {
    const verdict = this.#verdicts.activeWhen ??
      await this.#run.activation.verdict(this.#node, this.#run);
    if (verdict === undefined) return true;
    this.#verdicts.activeWhen = verdict;
    return verdict.met;
  }

  /**
   * Whether a condition is met; `otherwise` is the result if the node has none.
   */
  async holds(
    name: Exclude<ConditionName, "activeWhen">,
    { otherwise, resource }: {
      readonly otherwise: boolean;
      readonly resource?: unknown;
    },
  ): Promise<boolean> {
    const when = this.#node.when[name];
    if (when === undefined) return otherwise;
    const known = this.#verdicts[name];
    if (known !== undefined) return known.met;
    const { primary, ctx } = this.#run;
    const answer = await when({
      primary,
      ctx,
      resource: resource ?? await this.#node.dependent.read(primary, ctx),
    });
    const asked = { node: this.#node.name, condition: name };
    const verdict = asVerdict(answer, asked);
    this.#verdicts[name] = verdict;
    return verdict.met;
  }

  /** Reconciles the resource, and checks whether it is ready. */
  async reconcile(): Promise<NodeResult> {
    const { primary, ctx } = this.#run;
    const { dependent } = this.#node;
    const { operation, resource } = dependent.reconcile === undefined
      ? {
        operation: "none",
        resource: await dependent.read(primary, ctx),
      } as const
      : await dependent.reconcile(primary, ctx);
    const ready = !this.has("readyWhen") ||
      await this.holds("readyWhen", { otherwise: true, resource });
    return this.result(ready ? "reconciled" : "notReady", {
      operation,
      resource,
    });
  }

  /**
   * Deletes the resource, unless the garbage collector does, and checks whether
   * it no longer exists.
   *
   * @param withPrimary Whether the primary is being deleted as well, so that
   * the garbage collector deletes the resources that the primary owns.
   */
  async delete(withPrimary: boolean): Promise<NodeResult> {
    const { primary, ctx } = this.#run;
    const { dependent } = this.#node;
    if (!(withPrimary && dependent.garbageCollected)) {
      await dependent.delete?.(primary, ctx);
    }
    const gone = await this.holds("deletedWhen", { otherwise: true });
    return this.result(gone ? "deleted" : "deleting");
  }

  /** Creates the result of the node. */
  result(
    state: NodeState,
    more: Omit<NodeResult, "state" | "verdicts"> = {},
  ): NodeResult {
    return { ...more, state, verdicts: this.#verdicts };
  }
}

const OTHERWISE = { otherwise: true } as const;
const NOT_OTHERWISE = { otherwise: false } as const;

/** Decision on a node before any deletion. */
type Decision =
  | { readonly then: "keep"; readonly result: NodeResult }
  | { readonly then: "delete" }
  | { readonly then: "inactive"; readonly result: NodeResult };

/**
 * Reconciles the nodes, each when all its dependencies are ready, as many at
 * the same time as the graph and the limit allow.
 *
 * - A failure stops the nodes that depend on it; all others go on.
 * - A node whose `reconcileWhen` is not met is deleted, after all nodes that
 *   depend on it, from the leaves, even if their other dependencies are not
 *   ready. The nodes that depend on an inactive node are deleted in the same
 *   way.
 * - For a node that waits, no condition is evaluated.
 *
 * @returns The results of the nodes, by name.
 */
export async function reconcileGraph<P extends KubernetesObject>(
  graph: Graph<WorkflowNode<P>>,
  run: ExecutorContext<P>,
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
  // Usually no node is deleted.
  if (results.size === graph.order.length) return results;
  const deletions = new Map<WorkflowNode<P>, Promise<NodeResult>>();
  for (const node of graph.order.toReversed()) {
    const after = graph.dependentsOf(node).map((dependent) => ({
      dependent,
      result: deletions.get(dependent)!,
    }));
    deletions.set(
      node,
      finishNode(runs.get(node)!, decisions.get(node)!, { after, run }),
    );
  }
  for (const node of graph.order) {
    results.set(node.name, await deletions.get(node)!);
  }
  return results;
}

/** Decides on a node, and processes it, after all its dependencies. */
async function decide<P extends KubernetesObject>(
  node: NodeRun<P>,
  dependencies: readonly WorkflowNode<P>[],
  { decisions, limited }: {
    readonly decisions: ReadonlyMap<WorkflowNode<P>, Promise<Decision>>;
    readonly limited: ExecutorContext<P>["limited"];
  },
): Promise<Decision> {
  let waitingFor: string[] | undefined;
  let unwanted = false;
  for (const dependency of dependencies) {
    // The order guarantees that the promise exists.
    const made = await decisions.get(dependency)!;
    if (made.then !== "keep") unwanted = true;
    else if (!isReady(made.result)) (waitingFor ??= []).push(dependency.name);
  }
  if (unwanted) return { then: "delete" };
  if (waitingFor !== undefined) {
    return { then: "keep", result: node.result("waiting", { waitingFor }) };
  }
  return await limited(() => reconcileNode(node));
}

/** Reconciles a node whose dependencies are ready, if it is desired. */
async function reconcileNode<P extends KubernetesObject>(
  node: NodeRun<P>,
): Promise<Decision> {
  try {
    // Missing conditions cost nothing.
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

async function finishNode<P extends KubernetesObject>(
  node: NodeRun<P>,
  decision: Promise<Decision>,
  { after, run }: {
    readonly after: readonly {
      readonly dependent: WorkflowNode<P>;
      readonly result: Promise<NodeResult>;
    }[];
    readonly run: ExecutorContext<P>;
  },
): Promise<NodeResult> {
  const made = await decision;
  if (made.then !== "delete") return made.result;
  return await deleteAfter(node, after, { run, withPrimary: false });
}

/**
 * Deletes a node after all nodes that depend on it. Also used by the cleanup of
 * a whole graph.
 */
export async function deleteAfter<P extends KubernetesObject>(
  node: NodeRun<P>,
  after: readonly {
    readonly dependent: { readonly name: string };
    readonly result: Promise<NodeResult>;
  }[],
  { run, withPrimary }: {
    readonly run: ExecutorContext<P>;
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

/**
 * Deletes the nodes in reverse order: each after all nodes that depend on it.
 * Resources that the garbage collector deletes with the primary are left to it,
 * and inactive nodes are not touched. A failure keeps the dependencies of the
 * node; all other nodes are deleted.
 *
 * @returns The results of the nodes, by name.
 */
export async function cleanUpGraph<P extends KubernetesObject>(
  graph: Graph<WorkflowNode<P>>,
  run: ExecutorContext<P>,
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
