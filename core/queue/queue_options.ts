import type { Clock } from "../clock.ts";
import type { Limiter } from "./limiter.ts";
import type { Priority } from "./priority.ts";

/** Options of a `SchedulingQueue`. */
export interface SchedulingQueueOptions {
  /**
   * Where time comes from.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Called synchronously when keys wait and none did before; it may take them
   * at once.
   *
   * @default {nobody}
   */
  readonly onReady?: (() => void) | undefined;
  /**
   * Slows single keys down.
   *
   * @default {no limit}
   */
  readonly limiter?: Limiter | undefined;
}

/** Why and how urgently a key is added. */
export interface AddOptions {
  /**
   * How urgent it is.
   *
   * @default {Priority.live}
   */
  readonly priority?: Priority | undefined;
  /**
   * A number of the caller's that tells why, from 0 to 255.
   *
   * @default {0}
   */
  readonly cause?: number | undefined;
  /** Anything that tells more. */
  readonly detail?: unknown;
}
