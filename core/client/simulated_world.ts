import type { Clock } from "../clock.ts";
import type { Transport } from "./transport/transport.ts";

/**
 * Simulated world of the process: the cluster, time and random numbers in which
 * `coracle check` runs operators without a change of their code.
 */
export interface SimulatedWorld {
  /** Returns a transport to the simulated API server, for one client. */
  transport(): Transport;
  /** Clock for clients and operators without one of their own. */
  readonly clock: Clock;
  /** Random numbers for clients and operators without a source of their own. */
  readonly random: () => number;
  /** Host name. */
  readonly host: string;
  /** Minimum time after which the server ends a watch, in milliseconds. */
  readonly minWatchTimeout: number;
  /**
   * Leases of the operator, which need no renewal while it is alone and nothing
   * is disturbed: thousands of renewals would cost more than all other work.
   */
  readonly leases: {
    /** Time up to which a lease that this process holds counts as renewed. */
    renewedUntil(): number;
    /**
     * Promise that resolves when the lease has to be renewed; undefined if it has
     * to be renewed all the time.
     */
    undisturbed(): Promise<void> | undefined;
  };
  /** Promise that resolves when the simulation has ended. */
  readonly ended: Promise<void>;
}

/** Global key of the simulated world, shared by all copies of the library. */
const SWITCH = Symbol.for("@coracle/operator/simulated-world");

/** Returns the simulated world of the process; undefined without one. */
export function simulatedWorld(): SimulatedWorld | undefined {
  return (globalThis as Record<symbol, SimulatedWorld | undefined>)[SWITCH];
}

/** Sets the simulated world of the process; undefined ends the simulation. */
export function setSimulatedWorld(world: SimulatedWorld | undefined): void {
  (globalThis as Record<symbol, SimulatedWorld | undefined>)[SWITCH] = world;
}
