import type { LeaderElectionOptions } from "./leader_election.ts";
import type { Kind } from "../api/kind.ts";
import type { Namespaces } from "../controller/namespaces.ts";
import type { Logger } from "../logger.ts";

/** Handle of an operator for tools such as `coracle dev`. */
export interface OperatorHandle {
  /** Controllers of the operator, and the kinds that they watch. */
  readonly controllers: readonly {
    /** Name of the controller. */
    readonly name: string;
    /** Kind of the primaries of the controller. */
    readonly kind: Kind;
    /** Kinds of the secondary resources, from the event sources. */
    readonly secondaryKinds: readonly Kind[];
    /** Kinds that the controller only watches. */
    readonly readOnlyKinds: readonly Kind[];
    /** Options of the controller that tools need. */
    readonly settings: {
      /** Whether the CustomResourceDefinition is applied at start. */
      readonly install: boolean;
      /** Watched namespaces; undefined for those of the operator. */
      readonly namespaces?: Namespaces | undefined;
      /** Whether the primaries get a finalizer. */
      readonly usesFinalizer: boolean;
      /** Whether primaries have a status; derived from the kind if absent. */
      readonly hasStatus?: boolean | undefined;
      /** Workflow that runs before the reconciler. */
      readonly workflow?: { toMermaid?(): string } | undefined;
    };
  }[];
  /** Options of the operator that its deployment depends on. */
  readonly settings: {
    /** Watched namespaces. */
    readonly namespaces: Namespaces;
    /** Options of the leader election. */
    readonly leaderElection?: LeaderElectionOptions | undefined;
    /** Options of the sharding, for the Leases of the replicas. */
    readonly sharding?: LeaderElectionOptions | undefined;
    /** Grace period of its stop, in milliseconds. */
    readonly shutdownGrace?: number | undefined;
    /** Options of the server of the probes. */
    readonly probes?:
      | {
        /** Port to listen on. */
        readonly port: number;
        /** Address to listen on. */
        readonly host: string;
        /** Whether the server answers `coracle why`. */
        readonly debug: boolean;
      }
      | undefined;
  };
  /** Returns the runs of an object in each controller that knows it. */
  why(key: string): readonly object[];
  /** Returns the state of the operator as plain data. */
  inspect(): object;
  /** Returns a controller for tools that control it; undefined if there is none. */
  controllerNamed(name: string): {
    /** Adds a run of an object. */
    trigger(key: string): void;
    /** Kind of the primaries of the controller. */
    readonly kind: Kind;
    /** Options of the controller that tools need. */
    readonly settings: {
      /** Annotation that pauses a primary; undefined if there is none. */
      readonly pauseAnnotation?: string | undefined;
    };
  } | undefined;
  /**
   * Starts the operator; resolves when its caches are synced. A second call
   * only waits for the first.
   */
  start(): Promise<void>;
  /** Stops the operator gracefully; safe to call more than once. */
  stop(): Promise<void>;
}

/**
 * Development mode: the hooks of a tool that loads the program of an operator,
 * such as `coracle dev`. The program needs no change, because every operator
 * calls the hooks itself.
 */
export interface Development {
  /**
   * Whether operators run. If not, `start` and `run` return immediately, for
   * tools that only inspect the controllers.
   */
  readonly runs: boolean;
  /** Logger for operators without one of their own. */
  readonly logger?: Logger | undefined;
  /** Handles the creation of an operator. */
  operatorMade(operator: OperatorHandle): void;
  /** Handles the start of an operator, before its controllers; awaited. */
  operatorStarting?(operator: OperatorHandle): Promise<void>;
  /** Handles the completed start of an operator, whose caches are synced. */
  operatorStarted?(operator: OperatorHandle): void;
}

/** Global key, which all copies of the library in a process share. */
const SWITCH = Symbol.for("@coracle/operator/development");

/** Returns the development mode of the process; undefined in production. */
export function development(): Development | undefined {
  return (globalThis as Record<symbol, Development | undefined>)[SWITCH];
}

/** Sets the development mode of the process; undefined ends it. */
export function setDevelopment(value: Development | undefined): void {
  (globalThis as Record<symbol, Development | undefined>)[SWITCH] = value;
}
