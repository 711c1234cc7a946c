import type { KubernetesObject } from "../../core/api/object.ts";
import type { Context } from "../../core/controller/reconciler.ts";
import type { Activation } from "./activation.ts";
import type {
  NodeResult,
  NodeState,
  NodeVerdicts,
  WorkflowNode,
} from "./node.ts";
import { asVerdict, type ConditionName } from "./node_condition.ts";

/** What the executors work on. */
export interface RunContext<P extends KubernetesObject> {
  /** The primary, as the run was given it. */
  readonly primary: P;
  /** The context of the run. */
  readonly ctx: Context<P>;
  /** Which nodes take part. */
  readonly activation: Activation<P>;
  /** Bounds how many nodes are worked on at once. */
  readonly limited: <T>(task: () => Promise<T>) => Promise<T>;
}

/**
 * One node in one run: asks its conditions, each at most once, and does its
 * work. It knows nothing of the other nodes.
 */
export class NodeRun<P extends KubernetesObject> {
  readonly #node: WorkflowNode<P>;
  readonly #run: RunContext<P>;
  readonly #verdicts: NodeVerdicts = {};

  /**
   * Prepares a node; nothing happens yet.
   *
   * @param node Which one.
   * @param run What it works on.
   */
  constructor(node: WorkflowNode<P>, run: RunContext<P>) {
    this.#node = node;
    this.#run = run;
  }

  /** Whether the node has a condition. */
  has(name: ConditionName): boolean {
    return this.#node.when[name] !== undefined;
  }

  /** Whether the node takes part; if so, its sources have synced. */
  async isActive(): Promise<boolean> {
    const verdict = this.#verdicts.activeWhen ??
      await this.#run.activation.verdict(this.#node, this.#run);
    if (verdict === undefined) return true;
    this.#verdicts.activeWhen = verdict;
    return verdict.met;
  }

  /** Whether a condition holds; one that is not there holds as given. */
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

  /** Brings the resource in line and asks whether it is ready. */
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
   * Deletes the resource, where that is ours to do, and asks whether it is gone.
   *
   * @param withPrimary Whether the primary goes too, so that the garbage
   * collector does what it can.
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

  /** What became of the node. */
  result(
    state: NodeState,
    more: Omit<NodeResult, "state" | "verdicts"> = {},
  ): NodeResult {
    return { ...more, state, verdicts: this.#verdicts };
  }
}
