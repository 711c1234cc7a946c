import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { ManagedWorkflowResult } from "../../core/controller/context.ts";
import { messageWithCause } from "../../core/error_text.ts";
import {
  type Condition,
  conditionsIn,
  type NewCondition,
  READY,
  setCondition,
} from "../conditions/condition.ts";
import type { NodeResult, NodeState } from "./node.ts";

const DONE: ReadonlySet<NodeState> = new Set([
  "reconciled",
  "skipped",
  "inactive",
  "deleted",
]);

const LISTED_ERRORS = 5;

/** Maximum length of the text of one error in a message, in characters. */
const LONGEST_TEXT = 200;

/** First line of the message of an error, shortened. */
function shortText(error: unknown): string {
  const [line = ""] = messageWithCause(error).split("\n");
  return line.length > LONGEST_TEXT
    ? `${line.slice(0, LONGEST_TEXT - 1)}…`
    : line;
}

/**
 * Error for failed nodes of a workflow. Nodes that depend on them waited; all
 * others were processed.
 */
export class WorkflowError extends AggregateError {
  /** Results of all nodes. */
  readonly result: WorkflowResult;

  /**
   * Creates the error.
   *
   * @param result The results of all nodes.
   */
  constructor(result: WorkflowResult) {
    const { errors, nodes } = result;
    const texts = Array.from(
      errors,
      ([name, error]) => `${name}: ${shortText(error)}`,
    );
    const hidden = texts.splice(LISTED_ERRORS).length;
    if (hidden > 0) texts.push(`and ${hidden} more`);
    super(
      [...errors.values()],
      `Cannot finish the workflow: ${errors.size} of ${nodes.size} nodes failed: ${
        texts.join("; ")
      }`,
    );
    this.name = "WorkflowError";
    this.result = result;
  }
}

/**
 * Result of a workflow in one run.
 *
 * @typeParam N The types of the nodes' resources, by name.
 */
export class WorkflowResult<
  N extends Record<string, unknown> = Record<string, unknown>,
> implements ManagedWorkflowResult {
  /** Results of the nodes, in the order of the graph. */
  readonly nodes: ReadonlyMap<string, NodeResult>;
  /**
   * Whether every node is reconciled and ready, skipped, deleted or inactive.
   */
  readonly done: boolean;
  #summary: string | undefined;
  readonly #now: () => number;

  /**
   * Creates the result of a run.
   *
   * @param nodes The results of the nodes.
   * @param now Time in milliseconds since the Unix epoch; by default that of the
   * system clock.
   */
  constructor(
    nodes: ReadonlyMap<string, NodeResult>,
    now: () => number = Date.now,
  ) {
    this.nodes = nodes;
    this.#now = now;
    this.done = [...nodes.values()].every(({ state }) => DONE.has(state));
  }

  /**
   * Result of one node.
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
   * Resource of a node, if it was reconciled and exists.
   *
   * @throws {RangeError} If the workflow has no such node.
   */
  resource<K extends keyof N & string>(name: K): N[K] | undefined {
    return this.node(name).resource;
  }

  /** Names of the nodes in any of the given states. */
  inState(...states: readonly NodeResult["state"][]): string[] {
    return [...this.nodes]
      .filter(([, { state }]) => states.includes(state))
      .map(([name]) => name);
  }

  /** Errors of the nodes, by name. */
  get errors(): ReadonlyMap<string, unknown> {
    return new Map(
      this.inState("failed").map((name) => [name, this.nodes.get(name)!.error]),
    );
  }

  /**
   * Shortest delay after which a condition is evaluated again.
   *
   * @throws {RangeError | SyntaxError} If a condition returned an invalid
   * duration.
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

  /** Nodes and their states, on one line for users. */
  get summary(): string {
    // Used by both the log and the history of runs.
    this.#summary ??= Array.from(
      this.nodes,
      ([name, { state }]) => `${name} ${state}`,
    ).join(", ");
    return this.#summary;
  }

  /**
   * Throws if any node has failed.
   *
   * @throws {WorkflowError} With the errors of all nodes.
   */
  throwIfFailed(): void {
    if (this.done) return;
    if (this.inState("failed").length > 0) throw new WorkflowError(this);
  }

  /**
   * Converts the result to a condition: True if the workflow is done, and
   * otherwise False with the nodes that are not, and the reason.
   *
   * @param type The type of the condition; Ready by default.
   */
  toCondition(type: string = READY): NewCondition {
    const { size } = this.nodes;
    if (this.done) {
      const message = `${size} of ${size} are done`;
      return { type, status: "True", reason: "Reconciled", message };
    }
    const list = (...states: readonly NodeState[]) =>
      this.inState(...states).map((name) => this.#why(name)).join(", ");
    const failed = list("failed");
    const [reason, message] = failed === ""
      ? ["Progressing", `Waiting for ${list("notReady", "deleting")}`]
      : ["Failed", `Failed: ${failed}`];
    return { type, status: "False", reason, message };
  }

  /**
   * Adds the result to the conditions of the primary, for `patchStatus({
   * conditions: result.rollUp(primary) })`. An unchanged condition keeps its
   * transition time; conditions of other types are not changed.
   *
   * @param primary The primary.
   * @param options `type` is the type of the condition (Ready by default), and
   * `now` the time in milliseconds since the Unix epoch (by default that of the
   * operator's clock).
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
    const { type = READY, now = this.#now() } = options;
    const { generation } = primary.metadata;
    const before = conditionsIn(primary.status);
    return setCondition(before, this.toCondition(type), { now, generation });
  }

  /** Formats a node that is not done, with the message of its condition. */
  #why(name: string): string {
    const { verdicts, error, state } = this.nodes.get(name)!;
    const why = state === "failed"
      ? messageWithCause(error)
      : (state === "deleting" ? verdicts.deletedWhen : verdicts.readyWhen)
        ?.message;
    return why === undefined || why === "" ? name : `${name} (${why})`;
  }
}
