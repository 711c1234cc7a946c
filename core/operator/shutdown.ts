import { type Clock, deadline, type DeadlineOptions } from "../clock.ts";
import { hostProcess } from "../config/host_process.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";

/** Time for runs to end after their signals have aborted. */
const ABORT_GRACE_MS = 1_000;

export interface DrainDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Time for runs to end before their signals abort, in milliseconds. */
  readonly grace: number;
  /** Signal that ends the grace period early. */
  readonly hurry: AbortSignal;
}

/**
 * Drains controllers: they start no further runs, and current ones may end
 * within the grace period. Then their signals abort, and runs that still do not
 * end are named in the log and abandoned.
 */
export async function drain(
  controllers: readonly ManagedController[],
  { clock, log, grace, hurry }: DrainDeps,
): Promise<void> {
  for (const controller of controllers) {
    controller.pause();
    // Tasks end by their signal only.
    if (controller.settings.isTask) controller.abort();
  }
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

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * Listens for the signals that ask a process to end.
 *
 * @param listener Called with the signal and the number of signals so far.
 * @returns Function that removes the listener, so that signals end the process.
 */
export function onStopSignal(
  listener: (signal: string, count: number) => void,
): () => void {
  let count = 0;
  const listeners = SIGNALS.map((signal) => {
    const handle = () => listener(signal, ++count);
    hostProcess.on(signal, handle);
    return () => hostProcess.off(signal, handle);
  });
  return () => {
    for (const remove of listeners) remove();
  };
}
