import type { WorkflowResult } from "../../core/controller/managed_workflow.ts";
import type { NewCondition } from "../conditions/condition.ts";
import type { NodeResult, NodeState } from "./node.ts";

/** The states in which a node needs nothing more. */
const DONE: readonly NodeState[] = [
  "reconciled",
  "skipped",
  "inactive",
  "deleted",
];

/**
 * What a workflow did in one run, node by node.
 *
 * @typeParam N The types of the nodes' resources, by name.
 */
export class GraphResult<
  N extends Record<string, unknown> = Record<string, unknown>,
> implements WorkflowResult {
  /** What became of each node, in the order of the graph. */
  readonly nodes: ReadonlyMap<string, NodeResult>;
  /** Whether every node is reconciled and ready, deleted, or takes no part. */
  readonly done: boolean;

  /**
   * Sums up a run.
   *
   * @param nodes What became of each node.
   */
  constructor(nodes: ReadonlyMap<string, NodeResult>) {
    this.nodes = nodes;
    this.done = [...nodes.values()].every(({ state }) => DONE.includes(state));
  }

  /**
   * What became of one node.
   *
   * @throws {RangeError} If the workflow has no such node.
   */
  node<K extends keyof N & string>(name: K): NodeResult<N[K]> {
    const found = this.nodes.get(name);
    if (found === undefined) {
      throw new RangeError(
        `Cannot read a workflow's result: there is no such node: received "${name}"`,
      );
    }
    return found as NodeResult<N[K]>;
  }

  /** The names of the nodes in any of these states. */
  inState(...states: readonly NodeState[]): string[] {
    return [...this.nodes]
      .filter(([, { state }]) => states.includes(state))
      .map(([name]) => name);
  }

  /** What was thrown, by the names of the nodes. */
  get errors(): ReadonlyMap<string, unknown> {
    return new Map(
      this.inState("failed").map((name) => [name, this.nodes.get(name)!.error]),
    );
  }

  /**
   * Fails if any node has.
   *
   * @throws {AggregateError} With everything that was thrown.
   */
  throwIfFailed(): void {
    const { errors } = this;
    if (errors.size === 0) return;
    const texts = [...errors].map(([name, error]) =>
      `${name}: ${error instanceof Error ? error.message : String(error)}`
    );
    throw new AggregateError(
      errors.values(),
      `Cannot finish the workflow: ${errors.size} of ${this.nodes.size} nodes failed: received ${
        texts.join("; ")
      }`,
    );
  }

  /**
   * Says by one condition how far the workflow is: True when it is done, and
   * else False with the nodes that hold it up.
   *
   * @param type The type of the condition, such as Ready.
   */
  toCondition(type: string): NewCondition {
    if (this.done) {
      return {
        type,
        status: "True",
        reason: "Reconciled",
        message: `${this.nodes.size} of ${this.nodes.size} are done`,
      };
    }
    const failed = this.inState("failed");
    const open = this.inState("notReady", "deleting");
    return failed.length > 0
      ? {
        type,
        status: "False",
        reason: "Failed",
        message: `Failed: ${failed.join(", ")}`,
      }
      : {
        type,
        status: "False",
        reason: "Progressing",
        message: `Waiting for ${open.join(", ")}`,
      };
  }
}
