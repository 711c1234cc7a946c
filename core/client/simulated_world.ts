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
