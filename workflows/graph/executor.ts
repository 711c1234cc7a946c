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

export interface ExecutorContext<P extends KubernetesObject> {
  readonly primary: P;
  readonly ctx: Context<P>;
  readonly activation: Activation<P>;
  /** Limits how many nodes are processed at the same time. */
  readonly limited: <T>(task: () => Promise<T>) => Promise<T>;
  /** Whether the resources of all nodes should exist; absent for a cleanup. */
  readonly wanted?: Verdict;
}

/**
 * Execution of one node in one run: evaluates its conditions, each at most
 * once, and reconciles or deletes its dependent. It knows no other node.
 */
class NodeRun<P extends KubernetesObject> {
  readonly #node: WorkflowNode<P>;
  readonly #run: ExecutorContext<P>;
  readonly #verdicts: Partial<Record<ConditionName, Verdict>> = {};

  constructor(node: WorkflowNode<P>, run: ExecutorContext<P>) {
    this.#node = node;
    this.#run = run;
  }

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

  /** Whether a condition is met, or the node has none. */
  async holds(
    name: Exclude<ConditionName, "activeWhen">,
    resource?: unknown,
  ): Promise<boolean> {
    const when = this.#node.when[name];
    if (when === undefined) return true;
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

  /** Whether the resource should exist, by the workflow and by the node. */
  async isWanted(): Promise<boolean> {
    const { wanted } = this.#run;
    if (wanted === undefined || wanted.met) {
      // Missing conditions cost nothing.
      return !this.has("reconcileWhen") || await this.holds("reconcileWhen");
    }
    this.#verdicts.reconcileWhen = wanted;
    return false;
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
      await this.holds("readyWhen", resource);
    const state = ready ? "reconciled" : "notReady";
    return this.result(state, { operation, resource });
  }

  /**
   * Deletes the resource, and checks whether it no longer exists. In a cleanup
   * the garbage collector deletes what the primary owns.
   */
  async delete(): Promise<NodeResult> {
    const { primary, ctx, wanted } = this.#run;
    const { dependent } = this.#node;
    const isCleanup = wanted === undefined;
    if (!(isCleanup && dependent.garbageCollected)) {
      await dependent.delete?.(primary, ctx);
    }
    const gone = await this.holds("deletedWhen");
    return this.result(gone ? "deleted" : "deleting");
  }

  result(
    state: NodeState,
    more: Omit<NodeResult, "state" | "verdicts"> = {},
  ): NodeResult {
    return { ...more, state, verdicts: this.#verdicts };
  }
}

/** Decision on a node; a node without a result is deleted afterwards. */
interface Decision {
  /** Whether the nodes that depend on this node may exist. */
  readonly isWanted: boolean;
  readonly result?: NodeResult;
}

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
 */
export async function reconcileGraph<P extends KubernetesObject>(
  nodes: readonly WorkflowNode<P>[],
  run: ExecutorContext<P>,
): Promise<Map<string, NodeResult>> {
  const runs = new Map(nodes.map((node) => [node, new NodeRun(node, run)]));
  const decisions = new Map<string, Promise<Decision>>();
  for (const [node, nodeRun] of runs) {
    // The order guarantees that those of the dependencies exist.
    const before = Array.from(
      new Set(node.dependsOn),
      (name) => [name, decisions.get(name)!] as const,
    );
    decisions.set(node.name, decide(nodeRun, before, run));
  }
  const results = new Map<string, NodeResult>();
  for (const [name, decision] of decisions) {
    const { result } = await decision;
    if (result !== undefined) results.set(name, result);
  }
  // Usually no node is deleted.
  if (results.size === nodes.length) return results;
  return await deleteGraph(
    nodes,
    async (node, after) =>
      results.get(node.name) ?? await deleteAfter(runs.get(node)!, after, run),
  );
}

/** Decides on a node, and processes it, after all its dependencies. */
async function decide<P extends KubernetesObject>(
  node: NodeRun<P>,
  dependencies: readonly (readonly [string, Promise<Decision>])[],
  { limited }: ExecutorContext<P>,
): Promise<Decision> {
  const waitingFor: string[] = [];
  let isDeleted = false;
  for (const [name, decision] of dependencies) {
    const { isWanted, result } = await decision;
    if (!isWanted) isDeleted = true;
    else if (!READY_STATES.has(result!.state)) waitingFor.push(name);
  }
  if (isDeleted) return { isWanted: false };
  if (waitingFor.length > 0) {
    return { isWanted: true, result: node.result("waiting", { waitingFor }) };
  }
  return await limited(() => reconcileNode(node));
}

const READY_STATES: ReadonlySet<NodeState> = new Set(["reconciled", "skipped"]);

/** Reconciles a node whose dependencies are ready, if it is desired. */
async function reconcileNode<P extends KubernetesObject>(
  node: NodeRun<P>,
): Promise<Decision> {
  try {
    // Missing conditions cost nothing.
    if (node.has("activeWhen") && !await node.isActive()) {
      return { isWanted: false, result: node.result("inactive") };
    }
    if (node.has("skipWhen") && await node.holds("skipWhen")) {
      return { isWanted: true, result: node.result("skipped") };
    }
    if (!await node.isWanted()) return { isWanted: false };
    return { isWanted: true, result: await node.reconcile() };
  } catch (error) {
    return { isWanted: true, result: node.result("failed", { error }) };
  }
}

/** Nodes that depend on a node, by name, with their results. */
type Deletions = readonly (readonly [string, Promise<NodeResult>])[];

/**
 * Processes the nodes in reverse order; each gets the results of its
 * dependents.
 */
async function deleteGraph<P extends KubernetesObject>(
  nodes: readonly WorkflowNode<P>[],
  process: (node: WorkflowNode<P>, after: Deletions) => Promise<NodeResult>,
): Promise<Map<string, NodeResult>> {
  const pending = new Map<string, Promise<NodeResult>>();
  for (const node of nodes.toReversed()) {
    const after = nodes
      .filter(({ dependsOn }) => dependsOn.includes(node.name))
      .map(({ name }) => [name, pending.get(name)!] as const);
    pending.set(node.name, process(node, after));
  }
  const results = new Map<string, NodeResult>();
  for (const { name } of nodes) results.set(name, await pending.get(name)!);
  return results;
}

/** Deletes a node after all nodes that depend on it. */
async function deleteAfter<P extends KubernetesObject>(
  node: NodeRun<P>,
  after: Deletions,
  { limited }: ExecutorContext<P>,
): Promise<NodeResult> {
  const waitingFor: string[] = [];
  for (const [name, result] of after) {
    const { state } = await result;
    if (state !== "deleted" && state !== "inactive") waitingFor.push(name);
  }
  if (waitingFor.length > 0) return node.result("deleting", { waitingFor });
  return await limited(async () => {
    try {
      return await node.isActive()
        ? await node.delete()
        : node.result("inactive");
    } catch (error) {
      return node.result("failed", { error });
    }
  });
}

/**
 * Deletes the nodes in reverse order: each after all nodes that depend on it.
 * Resources that the garbage collector deletes with the primary are left to it,
 * and inactive nodes are not touched. A failure keeps the dependencies of the
 * node; all other nodes are deleted.
 */
export async function cleanUpGraph<P extends KubernetesObject>(
  nodes: readonly WorkflowNode<P>[],
  run: ExecutorContext<P>,
): Promise<Map<string, NodeResult>> {
  return await deleteGraph(
    nodes,
    (node, after) => deleteAfter(new NodeRun(node, run), after, run),
  );
}
