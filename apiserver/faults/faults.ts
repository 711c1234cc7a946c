import type { ActiveFault, FaultMatch, FaultRule } from "./fault_rule.ts";

/** How {@linkcode Faults.restart} goes. */
export interface RestartOptions {
  /**
   * How long nothing listens, in milliseconds of the server's clock.
   *
   * @default {0}
   */
  readonly downFor?: number | undefined;
  /**
   * Whether the objects are there again afterwards. What watches could resume
   * from is gone in either case.
   *
   * @default {true}
   */
  readonly keepData?: boolean | undefined;
}

/**
 * Makes a server misbehave as clusters do: by rules on requests, and at once.
 * Which requests a rule with a probability hits follows from the server's seed.
 *
 * @example The third create of a ConfigMap fails
 * ```ts
 * import { ApiServer } from "@coracle/operator/apiserver";
 *
 * const server = await ApiServer.start({ port: false });
 * const fault = server.faults.add({
 *   verb: "create",
 *   resource: "configmaps",
 *   skip: 2,
 *   count: 1,
 *   effect: { status: 503, retryAfter: 1 },
 * });
 * if (fault.hits !== 0) throw new Error("Too early");
 * await server.stop();
 * ```
 */
export interface Faults {
  /**
   * Puts a rule in force. Where several match, all are applied, in the order in
   * which they were added, until one answers.
   *
   * @throws {RangeError} If a number in it is out of range.
   */
  add(rule: FaultRule): ActiveFault;

  /** Ends every rule. */
  clear(): void;

  /** Breaks the connections of open watches; gives how many. */
  cutWatches(match?: FaultMatch): number;

  /** Ends open watches in order; gives how many. */
  endWatches(match?: FaultMatch): number;

  /** Lets open watches stay silent from now on; gives how many. */
  stallWatches(match?: FaultMatch): number;

  /** Ends open watches with a 410 event; gives how many. */
  expireWatches(match?: FaultMatch): number;

  /** Forgets the past: older resourceVersions and continue tokens are 410. */
  compact(): void;

  /** Breaks every connection; the server goes on listening. */
  dropConnections(): void;

  /**
   * Replaces the bearer token; the old one is 401 from now on.
   *
   * @param token The new one; a random one by default.
   * @returns The new token.
   */
  rotateToken(token?: string): string;

  /** Crashes the server and starts it again on the same port. */
  restart(options?: RestartOptions): Promise<void>;
}
