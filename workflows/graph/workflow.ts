import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { ManagedWorkflow } from "../../core/controller/managed_workflow.ts";
import type { Context } from "../../core/controller/context.ts";
import { SOURCE_PARTS } from "../dependents/kubernetes_dependent.ts";
import type { Dependent } from "../dependents/dependent.ts";
import { Activation } from "./activation.ts";
import {
  cleanUpGraph,
  type ExecutorContext,
  reconcileGraph,
} from "./executor.ts";
import { concurrencyLimit } from "./concurrency_limit.ts";
import { Graph } from "./graph.ts";
import { mermaid } from "./mermaid.ts";
import {
  NODE_RULES,
  type NodeOptions,
  type NodeResult,
  type WorkflowNode,
} from "./node.ts";
import { WorkflowResult } from "./workflow_result.ts";

/** Options of a {@linkcode Workflow}. */
export interface WorkflowOptions {
  /**
   * How many nodes of one primary are worked on at once.
   *
   * @default {10}
   */
  readonly concurrency?: number | undefined;
  /**
   * What happens with errors: `"throw"` fails the run with all of them,
   * `"collect"` leaves them in the result, where `reconcile` finds them in
   * `ctx.workflow`.
   *
   * @default {"throw"}
   */
  readonly errors?: "throw" | "collect" | undefined;
  /**
   * Whether the controller leaves it to the reconciler to call
   * {@linkcode Workflow.reconcile}, and {@linkcode Workflow.cleanup} if it has a
   * `cleanup` of its own; without one, cleanup stays automatic.
   *
   * @default {false}
   */
  readonly explicit?: boolean | undefined;
}

const RULES: OptionRules<WorkflowOptions> = {
  concurrency: "count?",
  errors: ["throw", "collect", undefined],
  explicit: "boolean?",
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
};

/**
 * Resources that belong to a primary, and in which order they come and go.
 *
 * Give one to `operator.register(Kind, reconciler, { workflow })`, and it runs
 * before `reconcile` and before `cleanup`; or call it yourself. Nothing is kept
 * between runs: each looks at the world afresh.
 *
 * @typeParam P The type of the primaries.
 * @typeParam N The types of the nodes' resources, by name.
 *
 * @example Two nodes, the second when the first is ready
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
  readonly #graph: Graph<WorkflowNode<P>>;
  readonly #activation: Activation<P>;
  readonly #options: WorkflowOptions;
  readonly #concurrency: number;

  /**
   * Makes a workflow, without nodes or of nodes in any order.
   *
   * @param options How it runs.
   * @param nodes Its nodes.
   * @throws {TypeError} If an option is unknown or of another type.
   * @throws {RangeError} If `concurrency` is not a positive integer.
   * @throws {GraphError} If a name is taken twice or unknown, or nodes depend on
   * each other in a circle; the message tells the path.
   */
  constructor(
    options: WorkflowOptions = {},
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
    this.#graph = new Graph(Array.from(nodes, checked));
    this.#activation = new Activation(this.nodes);
  }

  /**
   * The same workflow with one node more. What it depends on must be there
   * already, so that a cycle cannot be written down.
   *
   * @param name How results and other nodes call it.
   * @param dependent What is brought in line.
   * @param options When, and after which nodes.
   * @throws {TypeError} If the dependent is none, or an option is unknown or of
   * another type.
   * @throws {GraphError} If the name is taken, or a dependency is unknown.
   */
  add<K extends string, S>(
    name: K,
    dependent: Dependent<P, S>,
    options: NodeOptions<P, S> = {},
  ): Workflow<P, N & Record<K, S>> {
    const subject = `node "${name}" of a workflow`;
    checkOption(name, "name", { name: "name", subject });
    checkOptions(options, NODE_RULES, subject);
    const { dependsOn = [], ...when } = options;
    // The conditions of a node are only ever asked with its own resource.
    const node = { name, dependsOn, dependent, when } as WorkflowNode<P>;
    return new Workflow(this.#options, [...this.nodes, node]);
  }

  /** The nodes, each behind what it depends on. */
  get nodes(): readonly WorkflowNode<P>[] {
    return this.#graph.order;
  }

  /**
   * The event sources of the nodes, each once; those of nodes that are not
   * always active start and stop with them.
   */
  get sources(): readonly EventSource<P>[] {
    return this.#activation.sources;
  }

  /** Whether something must be deleted by hand before the primary may go. */
  get needsFinalizer(): boolean {
    return this.nodes.some(({ dependent, when }) =>
      dependent.delete !== undefined &&
      (!dependent.garbageCollected || when.deletedWhen !== undefined)
    );
  }

  /**
   * Brings the nodes in line.
   *
   * @throws {WorkflowError} If nodes failed and errors are not collected.
   */
  async reconcile(primary: P, ctx: Context<P>): Promise<WorkflowResult<N>> {
    const run = this.#run(primary, ctx);
    return this.#conclude(await reconcileGraph(this.#graph, run), ctx);
  }

  /**
   * Deletes the nodes in reverse order.
   *
   * @throws {WorkflowError} If nodes failed and errors are not collected.
   */
  async cleanup(primary: P, ctx: Context<P>): Promise<WorkflowResult<N>> {
    const run = this.#run(primary, ctx);
    return this.#conclude(await cleanUpGraph(this.#graph, run), ctx);
  }

  /**
   * What the workflow did in a run, typed by its nodes: for `reconcile`,
   * `cleanup`, and `onError`, where it tells which nodes failed.
   *
   * @param ctx The context of the run.
   * @throws {Error} If the workflow has not run yet in this run, as when its
   * invocation is explicit and still to come.
   */
  resultOf(ctx: Context<P>): WorkflowResult<N> {
    const result = this.resultIn(ctx);
    if (result !== undefined) return result;
    throw new Error(
      `Cannot read the result of a workflow: it has not run in this run: received nodes ${
        this.nodes.map(({ name }) => name).join(", ") || "(none)"
      }`,
    );
  }

  /** As {@linkcode Workflow.resultOf}; undefined if it has not run. */
  resultIn(ctx: Context<P>): WorkflowResult<N> | undefined {
    return ctx.attributes.get(this) as WorkflowResult<N> | undefined;
  }

  /**
   * Draws the nodes as a Mermaid flowchart.
   *
   * @param result What became of them, to be drawn too.
   */
  toMermaid(result?: WorkflowResult): string {
    return mermaid(this.nodes, result?.nodes);
  }

  #run(primary: P, ctx: Context<P>): ExecutorContext<P> {
    const activation = this.#activation;
    const limited = concurrencyLimit(this.#concurrency);
    return { primary, ctx, activation, limited };
  }

  #conclude(
    nodes: ReadonlyMap<string, NodeResult>,
    ctx: Context<P>,
  ): WorkflowResult<N> {
    const result = new WorkflowResult<N>(nodes);
    ctx.attributes.set(this, result);
    if (this.#options.errors !== "collect") result.throwIfFailed();
    return result;
  }
}

/**
 * A node that can be run.
 *
 * @throws {TypeError} If its dependent or one of its conditions is none.
 */
function checked<P extends KubernetesObject>(
  node: WorkflowNode<P>,
): WorkflowNode<P> {
  checkParts(node, GRAPH_NODE_PARTS, "a node of a workflow");
  const { dependsOn, when } = node;
  const subject = `node "${node.name}" of a workflow`;
  checkOptions({ dependsOn, ...when }, NODE_RULES, subject);
  const refuse = (what: string, value: unknown) =>
    new TypeError(
      `Cannot define a workflow: ${what} of node "${node.name}": received ${
        value === null ? "null" : typeof value
      }`,
    );
  const dependent: unknown = node.dependent;
  if (
    typeof dependent !== "object" || dependent === null ||
    typeof (dependent as Dependent<P>).read !== "function"
  ) throw refuse("a dependent with read() must be given", dependent);
  checkParts(dependent, DEPENDENT_PARTS, `${subject}, dependent`);
  for (const source of node.dependent.sources ?? []) {
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
