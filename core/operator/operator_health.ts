import type { ControllerHealth } from "../controller/controller.ts";

/** How an operator fares. */
export interface OperatorHealth {
  /** Whether it was started and not stopped. */
  readonly started: boolean;
  /** Whether the caches of all controllers are complete. */
  readonly ready: boolean;
  /** Whether all informers and event sources do their work. */
  readonly healthy: boolean;
  /** Whether it runs what waits; with leader election, whether it leads. */
  readonly leading: boolean;
  /** Who leads, as far as it is known; only with leader election. */
  readonly leader: string | undefined;
  /** How each controller fares. */
  readonly controllers: readonly ControllerHealth[];
}
