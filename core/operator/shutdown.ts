import { type Clock, deadline, type DeadlineOptions } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";

/** Time for runs to end after their signals have aborted. */
const ABORT_GRACE_MS = 1_000;

/** How controllers come to rest. */
export interface DrainDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** How long runs may go on before their signals fire, in milliseconds. */
  readonly grace: number;
  /** Fires to end the grace early. */
  readonly hurry: AbortSignal;
}

/**
 * Lets controllers come to rest: they begin no more runs, and those that there
 * are may end within the grace. Then their signals fire, and those that go on
 * all the same are named in the log and left behind.
 */
export async function drain(
  controllers: readonly ManagedController[],
  options: DrainDeps,
): Promise<void> {
  const { clock, log, grace, hurry } = options;
  for (const controller of controllers) controller.pause();
  const idle = Promise.all(
    controllers.map((controller) => controller.whenIdle()),
  );
  if (await isInTime(idle, grace, { clock, signal: hurry })) return;
  for (const controller of controllers) controller.abort();
  if (await isInTime(idle, ABORT_GRACE_MS, { clock })) return;
  for (const { name, runningKeys } of controllers) {
    if (runningKeys.length === 0) continue;
    log.error("Runs did not end in time and are left behind", {
      controller: name,
      objects: runningKeys,
    });
  }
}

/** Whether a promise is fulfilled before a limit in milliseconds. */
export function isInTime(
  promise: Promise<unknown>,
  limit: number,
  options: DeadlineOptions,
): Promise<boolean> {
  return deadline(promise, limit, options).then(() => true, () => false);
}
