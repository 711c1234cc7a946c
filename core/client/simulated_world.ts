import type { Clock } from "../clock.ts";
import type { Transport } from "./transport/transport.ts";

/**
 * Simulated world of the process, in which `coracle check` runs operators: their
 * cluster, time and random numbers, without a change of their code.
 */
export interface SimulatedWorld {
  /** Transport to the API server of the world, for one client. */
  transport(): Transport;
  /** Clock for clients and operators without one of their own. */
  readonly clock: Clock;
  /** Random numbers for clients and operators without a source of their own. */
  readonly random: () => number;
  /** Host name. */
  readonly host: string;
  /** Resolves when the world has ended. */
  readonly ended: Promise<void>;
}

/** Global key, because tool and program may load two copies of the library. */
const SWITCH = Symbol.for("@coracle/operator/simulated-world");

/** Returns the simulated world of the process; undefined in the real one. */
export function simulatedWorld(): SimulatedWorld | undefined {
  return (globalThis as Record<symbol, SimulatedWorld | undefined>)[SWITCH];
}

/** Sets the simulated world of the process; undefined ends it. */
export function setSimulatedWorld(world: SimulatedWorld | undefined): void {
  (globalThis as Record<symbol, SimulatedWorld | undefined>)[SWITCH] = world;
}
