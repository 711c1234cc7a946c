/**
 * Fault injection: rules that delay, reject, cut or stall requests and watches, as a
 * proxy in front of any transport or inside the embedded server, so that tests can
 * observe how an operator recovers. Must not import `write`, `builtin` or `crd`.
 *
 * @module
 */
import type { Duration } from "@coracle/operator/client";
import type { ActiveFault, FaultMatch, FaultRule } from "./fault_rule.ts";

/** Options of {@linkcode Faults.restart}. */
export type RestartOptions = NonNullable<Parameters<Faults["restart"]>[0]>;

/**
 * Fault injection for a server: rules on requests, and immediate faults. The
 * server's seed determines which requests a rule with a probability affects.
 *
 * @example The third create of a ConfigMap fails
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
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
   * Adds a rule. Several matching rules are applied in the order in which they
   * were added, until one answers the request.
   *
   * @throws {RangeError} If a number is out of range, or there is no such verb.
   */
  add(rule: FaultRule): ActiveFault;

  /** Removes all rules. */
  clear(): void;

  /** Breaks the connections of open watches; returns their number. */
  cutWatches(match?: FaultMatch): number;

  /** Ends open watches; returns their number. */
  endWatches(match?: FaultMatch): number;

  /** Stalls open watches; returns their number. */
  stallWatches(match?: FaultMatch): number;

  /** Ends open watches with a 410 event; returns their number. */
  expireWatches(match?: FaultMatch): number;

  /**
   * Discards the history: older resourceVersions and continue tokens get status
   * 410.
   */
  compact(): void;

  /**
   * Asks the clients of HTTP/2 to use other connections for further requests;
   * running streams go on.
   */
  goAway(): void;

  /** Breaks every connection; the server continues to listen. */
  dropConnections(): void;

  /**
   * Replaces the bearer token; the old token gets status 401.
   *
   * @param token New token; random by default.
   * @returns The new token.
   */
  rotateToken(token?: string): string;

  /**
   * Crashes the server and restarts it on the same port, after earlier restarts.
   * A stop of the server ends the restart.
   */
  restart(options?: {
    /**
     * Downtime, by the server's clock.
     *
     * @default {0}
     */
    readonly downFor?: Duration | undefined;
    /**
     * Whether the objects are kept. The history from which watches resume is
     * always lost.
     *
     * @default {true}
     */
    readonly keepData?: boolean | undefined;
  }): Promise<void>;
}
