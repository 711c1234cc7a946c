import type { Duration } from "../core/api/duration.ts";
import type { UntypedObject } from "../core/api/object.ts";
import type { Client } from "../core/client/client.ts";
import type { Clock } from "../core/clock.ts";
import type { DefinedKind } from "../core/crd/kind_definition.ts";
import type { Logger } from "../core/logger.ts";

/** Options of `checkOperator`. */
export interface CheckOptions {
  /**
   * Operator: the path or URL of a file that creates it, or a function. Modules of
   * a file are loaded for each incarnation, so that their state dies in a crash.
   */
  readonly operator:
    | string
    | URL
    | ((options: {
      /** Client with all rights. */
      readonly client: Client;
      /** Clock of the check. */
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
   * Objects that are created, changed and deleted. By default one of each kind of
   * the primaries is made from its schema.
   */
  readonly examples?: readonly UntypedObject[] | undefined;
  /**
   * Steps of a user, instead of those that are made from the examples. After each
   * step the operator comes to rest, unless `settle` is false.
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
          /** Object to create, or to change so that it is as given. */
          readonly apply: object;
        }
        | {
          /** Merge patch with apiVersion, kind and metadata of its object. */
          readonly patch: object;
        }
        | {
          /** Object to delete, by apiVersion, kind and metadata. */
          readonly delete: object;
        }
        | {
          /** Time to pass, such as `1h`. */
          readonly wait: string;
        }
      )
    )[]
    | undefined;
  /** Maximum number of plans; all of them by default. */
  readonly plans?: number | undefined;
  /**
   * Time limit; plans that would start later do not run, and scenarios that would
   * start after half of it do not either.
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
  /** Plan to run alone, as a finding has it. */
  readonly replay?: string | undefined;
  /** File of an older build, for plans that upgrade the operator. */
  readonly from?: string | undefined;
  /**
   * Differences that are ignored, because they depend on how a state was reached:
   * fields, such as
   * `Release .status.rollout.revision`, with `[]` for positions in lists, objects,
   * such as `Secret default/acme-account`, and prefixes of requests outside the
   * cluster, such as `POST http://acme.test`.
   *
   * @default {[]}
   */
  readonly ignore?: readonly string[] | undefined;
  /**
   * Answers what the operator requests by `fetch`, `node:http` or `node:https`; by
   * default nothing answers.
   */
  readonly externals?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Own invariants by name: functions that return false or a text if they do not
   * hold for the objects of the cluster.
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
    readonly eventually?:
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
  } | undefined;
}

/** Result of `checkOperator`; plain data. */
export interface CheckReport {
  /** Number of plans that ran. */
  readonly plans: number;
  /** What was found, each with the smallest plan that shows it. */
  readonly findings: readonly {
    /** Oracle that found it, such as `end-state`. */
    readonly oracle: string;
    /** What happened, in one sentence. */
    readonly title: string;
    /** Plan, as `--replay` takes it. */
    readonly plan: string;
    /** What the plan does. */
    readonly disturbance: string;
    /**
     * Writes that it is about: first that at which the plan intervenes, then those
     * that only one of the two runs has.
     */
    readonly writes: readonly string[];
    /** Differences from the state of the reference run. */
    readonly diff: string;
    /** Writes and events around the disturbance, as text. */
    readonly sequence: string;
    /** The same as a Mermaid sequence diagram. */
    readonly mermaid: string;
    /** Command that runs the plan again. */
    readonly replay: string;
    /** Number of plans that show the same. */
    readonly plans: number;
    /** Plans of other kinds that show the same, one of each. */
    readonly also: readonly string[];
  }[];
  /** What was covered. */
  readonly coverage: {
    /** Number of scenarios of the workload. */
    readonly scenarios: number;
    /** Number of scenarios that did not run, since half of the time was up. */
    readonly notRun?: number | undefined;
    /**
     * Number of scenarios without plans, since the undisturbed operator does not
     * come to rest in them.
     */
    readonly unsettled?: number | undefined;
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
    /** Number of findings that did not show again, and are not reported. */
    readonly unstable: number;
    /** What the operator requested outside of the cluster, and nobody answered. */
    readonly unanswered: readonly string[];
    /** CPU time of the runs, in milliseconds. */
    readonly cpu: number;
    /** What the option `exhaustive` has covered. */
    readonly exhaustive?: {
      /** Number of schedules: orders of deliveries and writes, with crashes. */
      readonly schedules: number;
      /** Number of runs that they took, since equal states are searched once. */
      readonly runs: number;
      /** Number of different states in which something was left open. */
      readonly states: number;
      /** Number of scenarios that were small enough. */
      readonly scenarios: number;
      /** Number of scenarios that were too big. */
      readonly leftOut: number;
      /** Whether all schedules ran within the budget. */
      readonly complete: boolean;
    } | undefined;
  };
}
