import type { UntypedObject } from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import type { DefinedKind } from "@coracle/operator/crd";
import type { NamedWebhookHost } from "@coracle/operator/internal";
import type { ApiServerOptions } from "../../apiserver/server_options.ts";
import type { ServerContent } from "../../apiserver/storage/file_journal.ts";
import type { Change } from "../../apiserver/storage/history.ts";
import type { CheckOptions } from "../check_options.ts";
import type { Perturbation } from "./perturbations.ts";
import type { TraceSink } from "./trace.ts";
import type { WorldPoint } from "./world_point.ts";
import type { Chooser } from "./world_schedule.ts";

type CreatesOperator = Extract<
  CheckOptions["operator"],
  (cluster: never) => unknown
>;

/** Options with which an operator can be created. */
export type OperatorCluster = Parameters<CreatesOperator>[0];

/** Operator, or another object that can be started. */
export type StartedOperator = ReturnType<CreatesOperator>;

/** Start of a simulated process of the operator. */
export interface WorldStart {
  /** Number of the simulated process, from 1. */
  readonly incarnation: number;
  /** Operators that were created in this process so far. */
  readonly made: readonly OperatorHandle[];
  readonly cluster: OperatorCluster;
}

export interface WorldOptions {
  /** Seed of names, times and, with `order`, the order of concurrent work. */
  readonly seed: number;
  /**
   * Loads the operator for a simulated process, with the time, random numbers
   * and `fetch` of the simulation. Returns undefined if it starts by itself.
   */
  readonly load: (
    start: WorldStart,
  ) =>
    | Promise<StartedOperator | undefined>
    | StartedOperator
    | undefined;
  /** Kinds that are installed before the operator starts. */
  readonly kinds?: readonly DefinedKind[] | undefined;
  /** Objects that are applied before the operator starts. */
  readonly objects?: readonly UntypedObject[] | undefined;
  /**
   * Whether pods run on a simulated node.
   *
   * @default {true}
   */
  readonly simulate?: boolean | undefined;
  /**
   * Whether Services get Endpoints and EndpointSlices. Those cost a tenth of a run
   * with pods, and few operators read them.
   *
   * @default {true}
   */
  readonly endpoints?: boolean | undefined;
  /**
   * Whether the Lease of a leader that is alone and undisturbed needs no renewals,
   * which saves most of the time of an idle day.
   *
   * @default {true}
   */
  readonly renewsLeases?: boolean | undefined;
  readonly perturbations?: readonly Perturbation[] | undefined;
  /**
   * Order of requests and deliveries that are pending at the same time.
   *
   * @default {"canonical"}
   */
  readonly order?: "canonical" | "seeded" | Chooser | undefined;
  /** Maximum number of requests, deliveries and timers; by default 100,000. */
  readonly maxActions?: number | undefined;
  /** Called after each change of an object. */
  readonly onChange?: ((change: Change) => void) | undefined;
  /** Answers the `fetch` requests of the operator. By default they fail. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Returns why a connection that is opened without `fetch` is held back, and
   * undefined if it may go. By default all are held back.
   */
  readonly refuse?: ((address: string) => Error | undefined) | undefined;
  /** Whether `fetch` takes real time while the virtual time stands still. */
  readonly fetchesReally?: boolean | undefined;
  /** Webhooks of the operator, and what answers all others; by default its own. */
  readonly webhooks?: {
    readonly host: NamedWebhookHost;
    readonly services: NonNullable<ApiServerOptions["services"]>;
  } | undefined;
  /** Objects of a cluster, with which the server starts. */
  readonly content?: ServerContent | undefined;
  /** Wall time at the start in milliseconds; by default that of every world. */
  readonly startAt?: number | undefined;
  /** Moment of another world from which this one goes on, in place of a new server. */
  readonly from?: WorldPoint | undefined;
  /** Whether moments are kept from which other worlds can go on. */
  readonly keepsPoints?: boolean | undefined;
  /** Where the trace is written. Defaults to the trace of the world. */
  readonly sink?: TraceSink | undefined;
}
