import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { ManagedWorkflowResult } from "../../core/controller/context.ts";
import {
  type Condition,
  type NewCondition,
  READY,
  setCondition,
} from "../conditions/condition.ts";
import type { NodeResult, NodeState } from "./node.ts";

/** The states in which a node needs nothing more. */
const DONE: ReadonlySet<NodeState> = new Set([
  "reconciled",
  "skipped",
  "inactive",
  "deleted",
]);

/** Nodes of a workflow have failed; everything else has gone on. */
export class WorkflowError extends AggregateError {
  /** What became of all nodes. */
  readonly result: WorkflowResult;

  /**
   * Tells of the nodes that failed.
   *
   * @param result What became of all nodes.
   */
  constructor(result: WorkflowResult) {
    const { errors, nodes } = result;
    const texts = Array.from(
      errors,
      ([name, error]) =>
        `${name}: ${error instanceof Error ? error.message : String(error)}`,
    );
    super(
      [...errors.values()],
      `Cannot finish the workflow: ${errors.size} of ${nodes.size} nodes failed: received ${
        texts.join("; ")
      }`,
    );
    this.name = "WorkflowError";
    this.result = result;
  }
}

/**
 * What a workflow did in one run, node by node.
 *
 * @typeParam N The types of the nodes' resources, by name.
 */
export class WorkflowResult<
  N extends Record<string, unknown> = Record<string, unknown>,
> implements ManagedWorkflowResult {
  /** What became of each node, in the order of the graph. */
  readonly nodes: ReadonlyMap<string, NodeResult>;
  /** Whether every node is reconciled and ready, deleted, or takes no part. */
  readonly done: boolean;
  #summary: string | undefined;

  /**
   * Sums up a run.
   *
   * @param nodes What became of each node.
   */
  constructor(nodes: ReadonlyMap<string, NodeResult>) {
    this.nodes = nodes;
    let done = true;
    for (const { state } of nodes.values()) done &&= DONE.has(state);
    this.done = done;
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

  /**
   * The resource of a node, if it was reconciled and exists.
   *
   * @throws {RangeError} If the workflow has no such node.
   */
  resource<K extends keyof N & string>(name: K): N[K] | undefined {
    return this.node(name).resource;
  }

  /** The names of the nodes in any of these states. */
  inState(...states: readonly NodeResult["state"][]): string[] {
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
   * The soonest that a condition wants to be asked again.
   *
   * @throws {RangeError | SyntaxError} If what a condition asked for is no duration.
   */
  get rescheduleAfter(): Duration | undefined {
    let soonest: number | undefined;
    for (const { verdicts } of this.nodes.values()) {
      for (const { recheckAfter } of Object.values(verdicts)) {
        if (recheckAfter === undefined) continue;
        const delay = milliseconds(recheckAfter, "recheckAfter");
        if (soonest === undefined || delay < soonest) soonest = delay;
      }
    }
    return soonest;
  }

  /** The nodes and what became of them, on one line for people. */
  get summary(): string {
    // The log and the history of runs both want it.
    this.#summary ??= Array.from(
      this.nodes,
      ([name, { state }]) => `${name} ${state}`,
    ).join(", ");
    return this.#summary;
  }

  /**
   * Fails if any node has.
   *
   * @throws {WorkflowError} With everything that was thrown.
   */
  throwIfFailed(): void {
    if (this.inState("failed").length > 0) throw new WorkflowError(this);
  }

  /**
   * Says by one condition how far the workflow is: True when it is done, and
   * else False with the nodes that hold it up, and why.
   *
   * @param type The type of the condition.
   */
  toCondition(type: string = READY): NewCondition {
    const { size } = this.nodes;
    if (this.done) {
      const message = `${size} of ${size} are done`;
      return { type, status: "True", reason: "Reconciled", message };
    }
    const failed = this.inState("failed").map((name) => this.#why(name));
    const open = this.inState("notReady", "deleting")
      .map((name) => this.#why(name));
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

  /**
   * Rolls the workflow up into the conditions of its primary, for
   * `patchStatus({ conditions: result.rollUp(primary) })`. What it said before
   * keeps its time; conditions of other types stay.
   *
   * @param primary Whose conditions they are.
   * @param options Which condition it becomes, and the present in milliseconds.
   */
  rollUp(
    primary: KubernetesObject & {
      readonly status?:
        | { readonly conditions?: readonly Condition[] | undefined }
        | undefined;
    },
    options: {
      readonly type?: string | undefined;
      readonly now?: number | undefined;
    } = {},
  ): Condition[] {
    const { type = READY, now = Date.now() } = options;
    const { generation } = primary.metadata;
    const before = primary.status?.conditions ?? [];
    return setCondition(before, this.toCondition(type), { now, generation });
  }

  /** A node that holds the workflow up, with what its condition said. */
  #why(name: string): string {
    const { verdicts, error, state } = this.nodes.get(name)!;
    const why = state === "failed"
      ? error instanceof Error ? error.message : String(error)
      : (state === "deleting" ? verdicts.deletedWhen : verdicts.readyWhen)
        ?.message;
    return why === undefined || why === "" ? name : `${name} (${why})`;
  }
}
