import type { KubernetesObject } from "../../core/api/object.ts";
import type { Context } from "../../core/controller/context.ts";
import type {
  Dependent,
  DependentResult,
  Verdict,
} from "../dependents/dependent.ts";
import type { Activation } from "./activation.ts";
import type { ConcurrencyLimit } from "../../core/pace.ts";
import {
  asVerdict,
  type ConditionName,
  type NodeResult,
  type NodeState,
  type WorkflowNode,
} from "./node.ts";

export interface ExecutorContext<P extends KubernetesObject> {
  readonly primary: P;
  readonly ctx: Context<P>;
  readonly activation: Activation<P>;
  /** Limits how many nodes are processed at the same time. */
  readonly limit: ConcurrencyLimit;
  /** Whether the resources of all nodes should exist; absent for a cleanup. */
  readonly wanted?: Verdict;
}

/**
 * Execution of one node in one run: evaluates its conditions, each at most
 * once, and reconciles or deletes its dependent. It knows no other node.
 */
class NodeRun<P extends KubernetesObject> {
  /** Decision on the node; undefined while it is pending. */
  decision: Decision | undefined;
  /** Promise that is fulfilled when there is a decision. */
  deciding: Promise<void> | undefined;
  readonly #node: WorkflowNode<P>;
  readonly #run: ExecutorContext<P>;
  readonly #verdicts: Partial<Record<ConditionName, Verdict>> = {};

  constructor(node: WorkflowNode<P>, run: ExecutorContext<P>) {
    this.#node = node;
    this.#run = run;
  }

  has(name: ConditionName): boolean {
    return this.#node.when[name] !== undefined ||
      this.#ownOf(name) !== undefined;
  }

  /** Condition that the dependent brings itself. */
  #ownOf(name: ConditionName): Dependent<P>["readyWhen"] {
    return name === "readyWhen" || name === "deletedWhen"
      ? this.#node.dependent[name]
      : undefined;
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
    const own = this.#ownOf(name);
    if (when === undefined && own === undefined) return true;
    const { primary, ctx } = this.#run;
    const { dependent } = this.#node;
    const context = {
      primary,
      ctx,
      resource: resource ?? await dependent.read(primary, ctx),
    };
    const asked = { node: this.#node.name, condition: name };
    let verdict: Verdict | undefined;
    if (own !== undefined) {
      verdict = asVerdict(await own.call(dependent, context), asked);
    }
    if (when !== undefined && verdict?.met !== false) {
      verdict = asVerdict(await when(context), asked);
    }
    this.#verdicts[name] = verdict!;
    return verdict!.met;
  }

  /** Whether a condition may keep the node from being reconciled. */
  get isRestricted(): boolean {
    const { activeWhen, skipWhen, reconcileWhen } = this.#node.when;
    return activeWhen !== undefined || skipWhen !== undefined ||
      reconcileWhen !== undefined || this.#run.wanted?.met === false;
  }

  /** Whether the resource should exist, by the workflow and by the node. */
  async isWanted(): Promise<boolean> {
    const { wanted } = this.#run;
    if (wanted === undefined || wanted.met) {
      return await this.holds("reconcileWhen");
    }
    this.#verdicts.reconcileWhen = wanted;
    return false;
  }

  /** Reconciles the resource, or reads one that is only read. */
  reconcile(): Promise<DependentResult<unknown>> {
    const { primary, ctx } = this.#run;
    const { dependent } = this.#node;
    return dependent.reconcile === undefined
      ? this.#read()
      : dependent.reconcile(primary, ctx);
  }

  async #read(): Promise<DependentResult<unknown>> {
    const { primary, ctx } = this.#run;
    const resource = await this.#node.dependent.read(primary, ctx);
    return { operation: "none", resource };
  }

  /**
   * Deletes the resource, unless it is left to the garbage collector, and checks
   * whether it no longer exists.
   */
  async delete(isLeft: boolean): Promise<NodeResult> {
    const { primary, ctx } = this.#run;
    const { dependent } = this.#node;
    if (!(isLeft && dependent.garbageCollected)) {
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
  const runs = new Map<string, NodeRun<P>>();
  for (const node of nodes) {
    const nodeRun = new NodeRun(node, run);
    runs.set(node.name, nodeRun);
    // The order guarantees that those of the dependencies exist.
    nodeRun.deciding = decide(nodeRun, node.dependsOn, runs, run.limit);
  }
  const results = new Map<string, NodeResult>();
  for (const { name } of nodes) {
    const nodeRun = runs.get(name)!;
    if (nodeRun.decision === undefined) await nodeRun.deciding;
    const { result } = nodeRun.decision!;
    if (result !== undefined) results.set(name, result);
  }
  // Usually no node is deleted.
  if (results.size === nodes.length) return results;
  return await deleteGraph(
    nodes,
    async ({ name }, after) =>
      results.get(name) ?? await deleteAfter(runs.get(name)!, after, run),
  );
}

const READY_STATES: ReadonlySet<NodeState> = new Set(["reconciled", "skipped"]);

/** Decides on a node, and reconciles it, after all its dependencies. */
async function decide<P extends KubernetesObject>(
  node: NodeRun<P>,
  dependsOn: readonly string[],
  runs: ReadonlyMap<string, NodeRun<P>>,
  limit: ConcurrencyLimit,
): Promise<void> {
  let waitingFor: Set<string> | undefined;
  let isDeleted = false;
  for (const name of dependsOn) {
    const dependency = runs.get(name)!;
    if (dependency.decision === undefined) await dependency.deciding;
    const { isWanted, result } = dependency.decision!;
    if (!isWanted) isDeleted = true;
    else if (!READY_STATES.has(result!.state)) {
      waitingFor = (waitingFor ?? new Set()).add(name);
    }
  }
  if (isDeleted) {
    node.decision = { isWanted: false };
    return;
  }
  if (waitingFor !== undefined) {
    const result = node.result("waiting", { waitingFor: [...waitingFor] });
    node.decision = { isWanted: true, result };
    return;
  }
  const turn = limit.enter();
  if (turn !== undefined) await turn;
  try {
    // Missing conditions cost nothing, not even a promise.
    if (node.isRestricted) node.decision = await refusal(node);
    if (node.decision !== undefined) return;
    const { operation, resource } = await node.reconcile();
    const ready = !node.has("readyWhen") ||
      await node.holds("readyWhen", resource);
    const state = ready ? "reconciled" : "notReady";
    const result = node.result(state, { operation, resource });
    node.decision = { isWanted: true, result };
  } catch (error) {
    const result = node.result("failed", { error });
    node.decision = { isWanted: true, result };
  } finally {
    limit.leave();
  }
}

/** Decision on a node that is not to be reconciled; otherwise undefined. */
async function refusal<P extends KubernetesObject>(
  node: NodeRun<P>,
): Promise<Decision | undefined> {
  if (!await node.isActive()) {
    return { isWanted: false, result: node.result("inactive") };
  }
  if (node.has("skipWhen") && await node.holds("skipWhen")) {
    return { isWanted: true, result: node.result("skipped") };
  }
  return await node.isWanted() ? undefined : { isWanted: false };
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
  { limit }: ExecutorContext<P>,
  isLeft = false,
): Promise<NodeResult> {
  const waitingFor: string[] = [];
  for (const [name, result] of after) {
    const { state } = await result;
    if (state !== "deleted" && state !== "inactive") waitingFor.push(name);
  }
  if (waitingFor.length > 0) return node.result("deleting", { waitingFor });
  await limit.enter();
  try {
    return await node.isActive()
      ? await node.delete(isLeft)
      : node.result("inactive");
  } catch (error) {
    return node.result("failed", { error });
  } finally {
    limit.leave();
  }
}

/**
 * Deletes the nodes in reverse order: each after all nodes that depend on it.
 * Resources that the garbage collector deletes with the primary are left to it,
 * except those with `deletedWhen`, for which the primary waits, and all that
 * depends on them. Inactive nodes are not touched. A failure keeps the
 * dependencies of the node; all other nodes are deleted.
 */
export async function cleanUpGraph<P extends KubernetesObject>(
  nodes: readonly WorkflowNode<P>[],
  run: ExecutorContext<P>,
): Promise<Map<string, NodeResult>> {
  const awaited = new Set<string>();
  for (const { name, dependsOn, when, dependent } of nodes) {
    const isAwaited = when.deletedWhen ?? dependent.deletedWhen;
    if (isAwaited || dependsOn.some((other) => awaited.has(other))) {
      awaited.add(name);
    }
  }
  return await deleteGraph(
    nodes,
    (node, after) =>
      deleteAfter(new NodeRun(node, run), after, run, !awaited.has(node.name)),
  );
}
