import type {
  Client,
  Clock,
  Duration,
  Logger,
  UntypedObject,
} from "@coracle/operator/client";
import type { DefinedKind } from "@coracle/operator/crd";

/** Options of `checkOperator`. */
export interface CheckOptions {
  /**
   * Operator: the path or URL of a file that creates it, or a function. Modules
   * of a file are loaded again after each simulated crash, without old state.
   */
  readonly operator:
    | string
    | URL
    | ((options: {
      /** Client with all rights. */
      readonly client: Client;
      /** Virtual clock of the plan that runs. */
      readonly clock: Clock;
      /** Logger of the check. */
      readonly logger: Logger;
      /** Namespaces to watch. */
      readonly namespaces: "all" | readonly string[];
    }) => {
      /** Starts the operator. */
      start(): Promise<void>;
    });
  /**
   * Kinds to install that the operator does not register.
   *
   * @default {[]}
   */
  readonly kinds?: readonly DefinedKind[] | undefined;
  /**
   * Objects that are created, changed and deleted. By default one object of
   * each primary kind is generated from its schema.
   */
  readonly examples?: readonly UntypedObject[] | undefined;
  /**
   * Steps of a user, instead of those that are generated from the examples.
   * After each step the operator comes to rest, unless `settle` is false.
   */
  readonly workload?:
    | readonly (
      & {
        /**
         * Whether the operator comes to rest before the next step.
         *
         * @default {true}
         */
        readonly settle?: boolean | undefined;
      }
      & (
        | {
          /** Object to apply: it is created, or changed to match. */
          readonly apply: object;
        }
        | {
          /**
           * Merge patch with apiVersion, kind and metadata of its object. Its status
           * is written too, as the controller of the object would.
           */
          readonly patch: object;
        }
        | {
          /** Object to delete, by apiVersion, kind and metadata. */
          readonly delete: object;
        }
        | {
          /** Time to wait, such as `1h`. */
          readonly wait: string;
        }
      )
    )[]
    | undefined;
  /** Maximum number of plans; all of them by default. */
  readonly plans?: number | undefined;
  /**
   * Time limit of the check: no plan starts after it, and no scenario after
   * half of it.
   *
   * @default {"10m"}
   */
  readonly budget?: Duration | undefined;
  /**
   * Whether to run every order of deliveries and writes, with a crash at each
   * write, instead of plans: for scenarios with at most 8 writes and 2 objects.
   *
   * @default {false}
   */
  readonly exhaustive?: boolean | undefined;
  /**
   * Seed of names, UIDs and jitter.
   *
   * @default {1}
   */
  readonly seed?: number | undefined;
  /** Kinds of plans to run, such as `crash`; all of them by default. */
  readonly only?: readonly string[] | undefined;
  /** Plan to run alone, from the `plan` of a finding. */
  readonly replay?: string | undefined;
  /** Name of the operator among the exports of its file, which may have several. */
  readonly export?: string | undefined;
  /** File of an older build, for plans that upgrade the operator. */
  readonly from?: string | undefined;
  /**
   * Differences that are ignored, because they depend on how a state was
   * reached: fields with what is in them, such as `Release .status.rollout`, with
   * `[]` for positions in lists; objects, such as `Secret default/acme-account`; all
   * objects of a kind, such as `Pod`, or those with labels, such as
   * `Pod app=autoscaler,tier=worker`; and prefixes of requests outside the
   * cluster, such as `POST http://acme.test`.
   *
   * @default {[]}
   */
  readonly ignore?: readonly string[] | undefined;
  /**
   * Answers the requests that the operator sends by `fetch`, `node:http` or
   * `node:https`. By default they fail.
   */
  readonly externals?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Custom invariants by name: functions that return false or a text if they do
   * not hold for the objects of the cluster.
   */
  readonly invariants?: {
    /** Invariants that must hold after each change. */
    readonly always?:
      | Readonly<
        Record<
          string,
          (state: {
            /** Objects of a kind, such as `ConfigMap`. */
            list(kind: string): readonly UntypedObject[];
          }) => boolean | string | void
        >
      >
      | undefined;
    /** Invariants that must hold when the operator is at rest. */
    readonly eventually?: NonNullable<CheckOptions["invariants"]>["always"];
  } | undefined;
}

/** Result of `checkOperator`; plain data. */
export interface CheckReport {
  /** Number of plans that ran. */
  readonly plans: number;
  /** Findings, each with the smallest plan that reproduces it. */
  readonly findings: readonly {
    /** Name of the oracle that made the finding, such as `end-state`. */
    readonly oracle: string;
    /** Summary of the finding, in one sentence. */
    readonly title: string;
    /** Text of the plan, for `--replay`. */
    readonly plan: string;
    /** Description of the disturbances of the plan. */
    readonly disturbance: string;
    /**
     * Writes that the finding concerns: first the one that was disturbed, then
     * those that differ from the reference run.
     */
    readonly writes: readonly string[];
    /** Differences from the state of the reference run. */
    readonly diff: string;
    /** Writes and events around the disturbance, as text. */
    readonly sequence: string;
    /** Writes and events around the disturbance, as a Mermaid diagram. */
    readonly mermaid: string;
    /** Command that runs the plan again. */
    readonly replay: string;
    /** Number of plans with the same finding. */
    readonly plans: number;
    /** Plans of other kinds with the same finding, one of each kind. */
    readonly also: readonly string[];
  }[];
  /** How much was tried. */
  readonly coverage: {
    /** Number of scenarios of the workload. */
    readonly scenarios: number;
    /** Number of scenarios that did not run for lack of time. */
    readonly notRun?: number | undefined;
    /**
     * Number of scenarios without plans, because the undisturbed operator does
     * not come to rest in them.
     */
    readonly unsettled?: number | undefined;
    /**
     * Number of scenarios whose states were not compared, because no time was left
     * for the run with another seed that shows which fields are random.
     */
    readonly uncompared?: number | undefined;
    /**
     * Number of scenarios with a change that the server or a webhook of the operator
     * refuses, or whose value a part of the operator cannot have: their states are
     * not compared with others.
     */
    readonly refused?: number | undefined;
    /** Number of writes in the reference runs. */
    readonly writes: number;
    /** Number of watch events in the reference runs. */
    readonly events: number;
    /** Number of derived plans. */
    readonly planned: number;
    /** Number of plans that were left out because they cannot matter. */
    readonly pruned: number;
    /** Number of plans that ran, by kind. */
    readonly byKind: Readonly<Record<string, number>>;
    /** Number of findings that were not reproducible, and are not reported. */
    readonly unstable: number;
    /** Requests of the operator outside the cluster that were not answered. */
    readonly unanswered: readonly string[];
    /** CPU time of the runs, in milliseconds. */
    readonly cpu: number;
    /** Coverage of the exhaustive search. */
    readonly exhaustive?: {
      /** Number of schedules: orders of deliveries and writes, with crashes. */
      readonly schedules: number;
      /** Number of runs; equal states are searched only once. */
      readonly runs: number;
      /** Number of states with more than one possible continuation. */
      readonly states: number;
      /** Number of scenarios that were small enough to search. */
      readonly scenarios: number;
      /** Number of scenarios that were too big to search. */
      readonly leftOut: number;
      /** Whether all schedules ran within the budget. */
      readonly complete: boolean;
    } | undefined;
  };
}
