/**
 * Workflow: a graph of dependents that is reconciled in the order of their
 * dependencies and deleted in reverse, with conditions for each node.
 *
 * Guarantees: nodes that do not depend on each other run concurrently; a failed
 * node stops only its dependents; results are typed by node; cycles are
 * rejected with their path.
 *
 * The folder imports dependents, conditions, kstatus and core, but not phases
 * or apply.
 *
 * @module
 */
import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { ManagedWorkflow } from "../../core/controller/managed_workflow.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import {
  setOf,
  SOURCE_PARTS,
  wouldDelete,
} from "../dependents/kubernetes_dependent.ts";
import type { Dependent, Verdict } from "../dependents/dependent.ts";
import { Activation } from "./activation.ts";
import {
  cleanUpGraph,
  type ExecutorContext,
  reconcileGraph,
} from "./executor.ts";
import { ConcurrencyLimit } from "../../core/pace.ts";
import { GraphError, mermaid, orderNodes } from "./graph.ts";
import {
  asVerdict,
  NODE_RULES,
  type NodeOptions,
  type NodeResult,
  type WorkflowNode,
} from "./node.ts";
import { WorkflowResult } from "./workflow_result.ts";

/** Options of a {@linkcode Workflow}. */
export interface WorkflowOptions<P extends KubernetesObject> {
  /**
   * Maximum number of nodes that are processed at the same time, for each
   * primary.
   *
   * @default {10}
   */
  readonly concurrency?: number | undefined;
  /**
   * When errors of nodes fail the run: with `"throw"` before `reconcile` or
   * `cleanup` is called. With `"collect"` it is called, finds them in the result
   * of the workflow, and may write them into the status; then the run fails and
   * is retried, unless its result has a delay (`rescheduleAfter`).
   *
   * @default {"throw"}
   */
  readonly errors?: "throw" | "collect" | undefined;
  /**
   * Whether the reconciler calls {@linkcode Workflow.reconcile} itself, and
   * {@linkcode Workflow.cleanup} if it has a `cleanup` of its own; without one,
   * the cleanup stays automatic.
   *
   * @default {false}
   */
  readonly explicit?: boolean | undefined;
  /**
   * Whether the resources of all nodes should exist; evaluated once a run. If
   * not, they are deleted in reverse order, as with the condition of this name
   * of every node. By default they should exist.
   */
  readonly reconcileWhen?:
    | ((
      context: { readonly primary: P; readonly ctx: Context<P> },
    ) => MaybePromise<boolean | Verdict>)
    | undefined;
}

const RULES: OptionRules<WorkflowOptions<never>> = {
  concurrency: "count?",
  errors: ["throw", "collect", undefined],
  explicit: "boolean?",
  reconcileWhen: "function?",
};

const GRAPH_NODE_PARTS: OptionRules<Omit<WorkflowNode<never>, "dependent">> = {
  name: "name",
  dependsOn: "strings",
  when: "object",
};
const DEPENDENT_PARTS: OptionRules<Dependent<never>> = {
  sources: "array?",
  garbageCollected: "boolean?",
  read: "function",
  reconcile: "function?",
  delete: "function?",
  readyWhen: "function?",
  deletedWhen: "function?",
};

/**
 * Graph of dependents, which are reconciled in the order of their dependencies
 * and deleted in reverse.
 *
 * Pass it to `operator.register(Kind, reconciler, { workflow })` to run it
 * before `reconcile` and before `cleanup`, or call it from a reconciler. It
 * keeps no state between runs.
 *
 * @typeParam P The type of the primaries.
 * @typeParam N The types of the nodes' resources, by name.
 *
 * @example Two nodes, the second after the first
 * ```ts
 * import { Workflow } from "@coracle/operator/workflows";
 *
 * const flow = new Workflow()
 *   .add("database", { read: () => "up" })
 *   .add("schema", { read: () => 3 }, {
 *     dependsOn: ["database"],
 *     readyWhen: ({ resource }) => resource === 3,
 *   });
 * if (!flow.toMermaid().includes("n0 --> n1")) throw new Error("Unexpected");
 * ```
 */
export class Workflow<
  P extends KubernetesObject = KubernetesObject,
  // deno-lint-ignore ban-types -- no nodes yet
  N extends Record<string, unknown> = {},
> implements ManagedWorkflow<P> {
  /** Whether the reconciler calls {@linkcode Workflow.reconcile} itself. */
  readonly explicit: boolean;
  /** Nodes in an order in which each follows its dependencies. */
  readonly nodes: readonly WorkflowNode<P>[];
  readonly #activation: Activation<P>;
  readonly #options: WorkflowOptions<P>;
  readonly #concurrency: number;

  /**
   * Creates a workflow, empty or with nodes in any order.
   *
   * @param options The concurrency, and the error handling.
   * @param nodes The nodes.
   * @throws {TypeError} If an option is unknown or of another type.
   * @throws {RangeError} If `concurrency` is not a positive integer.
   * @throws {GraphError} If a name is used twice or unknown, nodes depend on
   * each other in a circle, whose path is in the message, or a bulk dependent
   * would delete the objects of another node.
   */
  constructor(
    options: WorkflowOptions<P> = {},
    nodes: Iterable<WorkflowNode<P>> = [],
  ) {
    checkOptions(options, RULES, "a workflow");
    if (typeof Object(nodes)[Symbol.iterator] !== "function") {
      throw new TypeError(
        `Cannot define a workflow: its nodes must be iterable: received ${
          typeText(nodes)
        }`,
      );
    }
    const { concurrency = 10, explicit = false } = options;
    this.#options = options;
    this.#concurrency = concurrency;
    this.explicit = explicit;
    this.nodes = orderNodes(Array.from(nodes, checked));
    checkBulks(this.nodes);
    this.#activation = new Activation(this.nodes);
  }

  /**
   * Returns a workflow with one more node. The dependencies of the node must
   * already be added, so that there can be no cycle.
   *
   * @param name The name of the node in results and dependencies.
   * @param dependent The dependent to reconcile.
   * @param options The dependencies and conditions of the node.
   * @throws {TypeError} If the dependent is invalid, or an option is unknown or
   * of another type.
   * @throws {GraphError} If the name is taken, a dependency is unknown, or a bulk
   * dependent would delete the objects of another node.
   */
  add<K extends string, S>(
    name: K,
    dependent: Dependent<P, S>,
    options: NodeOptions<P, S> = {},
  ): Workflow<P, N & Record<K, S>> {
    checkOptions(options, NODE_RULES, `node "${name}" of a workflow`);
    const { dependsOn = [], ...when } = options;
    // The conditions of a node only get its own resource.
    const node = { name, dependsOn, dependent, when } as WorkflowNode<P>;
    return new Workflow(this.#options, [...this.nodes, node]);
  }

  /**
   * Event sources of the nodes, each once. The sources of nodes with
   * `activeWhen` start and stop with them.
   */
  get sources(): readonly EventSource<P>[] {
    return this.#activation.sources;
  }

  /**
   * Whether a resource must be deleted explicitly before the primary, so that a
   * finalizer is needed.
   */
  get needsFinalizer(): boolean {
    return this.nodes.some(({ dependent, when }) =>
      dependent.delete !== undefined &&
      (!dependent.garbageCollected ||
        (when.deletedWhen ?? dependent.deletedWhen) !== undefined)
    );
  }

  /**
   * Reconciles the nodes.
   *
   * @throws {WorkflowError} If nodes failed and errors are not collected.
   */
  async reconcile(primary: P, ctx: Context<P>): Promise<WorkflowResult<N>> {
    const { reconcileWhen } = this.#options;
    const answer = await reconcileWhen?.({ primary, ctx }) ?? true;
    const wanted = asVerdict(answer, { condition: "reconcileWhen" });
    const run = { ...this.#run(primary, ctx), wanted };
    return this.#resultFrom(await reconcileGraph(this.nodes, run), ctx);
  }

  /**
   * Deletes the nodes in reverse order.
   *
   * @throws {WorkflowError} If nodes failed and errors are not collected.
   */
  async cleanup(primary: P, ctx: Context<P>): Promise<WorkflowResult<N>> {
    const run = this.#run(primary, ctx);
    return this.#resultFrom(await cleanUpGraph(this.nodes, run), ctx);
  }

  /**
   * Result of the workflow in a run, typed by its nodes: for `reconcile`,
   * `cleanup`, and `onError`, where it has the errors of the nodes.
   *
   * @param ctx The context of the run.
   * @throws {Error} If the workflow has not been executed in this run, for
   * example because its invocation is explicit.
   */
  resultOf(ctx: Context<P>): WorkflowResult<N> {
    const result = this.resultIn(ctx);
    if (result !== undefined) return result;
    throw new Error(
      `Cannot read the result of the workflow of ${
        this.nodes.map(({ name }) => name).join(", ") || "no nodes"
      }: it was not executed in this run, so register it with { workflow }, or call its reconcile()`,
    );
  }

  /** Result of the workflow in a run; undefined if it was not executed. */
  resultIn(ctx: Context<P>): WorkflowResult<N> | undefined {
    return ctx.attributes.get(this) as WorkflowResult<N> | undefined;
  }

  /**
   * Renders the nodes as a Mermaid flowchart.
   *
   * @param result A result whose node states are included.
   */
  toMermaid(result?: WorkflowResult): string {
    return mermaid(this.nodes, result?.nodes);
  }

  #run(primary: P, ctx: Context<P>): ExecutorContext<P> {
    const activation = this.#activation;
    const limit = new ConcurrencyLimit(this.#concurrency);
    return { primary, ctx, activation, limit };
  }

  #resultFrom(
    nodes: ReadonlyMap<string, NodeResult>,
    ctx: Context<P>,
  ): WorkflowResult<N> {
    const result = new WorkflowResult<N>(
      nodes,
      () => ctx.clock.wallTime(),
    );
    ctx.attributes.set(this, result);
    if (this.#options.errors !== "collect") result.throwIfFailed();
    return result;
  }
}

/** Validates a node. */
function checked<P extends KubernetesObject>(
  node: WorkflowNode<P>,
): WorkflowNode<P> {
  checkParts(node, GRAPH_NODE_PARTS, "a node of a workflow");
  const subject = `node "${node.name}" of a workflow`;
  checkOptions(node.when, NODE_RULES, subject);
  const refuse = (what: string, value: unknown) =>
    new TypeError(
      `Cannot define node "${node.name}" of a workflow: ${what}: received ${
        value === null ? "null" : typeof value
      }`,
    );
  const { dependent } = node;
  if (typeof dependent?.read !== "function") {
    throw refuse(
      "its dependent needs a method read(), as those of kubernetesDependent() have",
      dependent,
    );
  }
  checkParts(dependent, DEPENDENT_PARTS, `${subject}, dependent`);
  for (const source of dependent.sources ?? []) {
    checkParts(source, SOURCE_PARTS, `${subject}, source of its dependent`);
  }
  const { activeWhen } = node.when;
  const isFunction = activeWhen === undefined ||
    typeof activeWhen === "function";
  if (!isFunction && !("crdOf" in Object(activeWhen))) {
    throw refuse('"activeWhen" must be a function or crdPresent()', activeWhen);
  }
  return node;
}

/** Checks that no dependent takes the objects of another node for its own. */
function checkBulks(nodes: readonly WorkflowNode<never>[]): void {
  const sets = new Map<string, string>();
  for (const { name, dependent } of nodes) {
    const set = setOf(dependent);
    if (set === undefined) continue;
    const other = sets.get(set);
    sets.set(set, name);
    if (other === undefined) continue;
    throw new GraphError(
      `Cannot define a workflow: the sets of "${other}" and "${name}" would delete each other's objects: give each a name of its own, by the option "name" of objectsDependent(): received "${set}" twice`,
    );
  }
  for (const bulk of nodes) {
    const other = nodes.find((node) =>
      wouldDelete(bulk.dependent, node.dependent)
    );
    if (other === undefined) continue;
    throw new GraphError(
      `Cannot define a workflow: the bulk dependent of "${bulk.name}" would delete the objects of "${other.name}", which have the same kind: give its objects a label, and set watch: { labelSelector } in its options`,
    );
  }
}
