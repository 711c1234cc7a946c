import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";

/** How long runs may take to obey their signals, in milliseconds. */
const OBEY = 1_000;

/** How controllers come to rest. */
export interface DrainOptions {
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
  options: DrainOptions,
): Promise<void> {
  const { clock, log, grace, hurry } = options;
  for (const controller of controllers) controller.pause();
  const idle = Promise.all(
    controllers.map((controller) => controller.whenIdle()),
  );
  if (await within(idle, grace, { clock, hurry })) return;
  for (const controller of controllers) controller.abort();
  const never = new AbortController().signal;
  if (await within(idle, OBEY, { clock, hurry: never })) return;
  for (const { name, runningKeys } of controllers) {
    if (runningKeys.length === 0) continue;
    log.error("Runs did not end in time and are left behind", {
      controller: name,
      objects: runningKeys,
    });
  }
}

/** Whether a promise is fulfilled in time, or before somebody is in a hurry. */
function within(
  promise: Promise<unknown>,
  duration: number,
  { clock, hurry }: { readonly clock: Clock; readonly hurry: AbortSignal },
): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (inTime: boolean) => {
      timer.cancel();
      hurry.removeEventListener("abort", late);
      resolve(inTime);
    };
    const late = () => end(false);
    const timer = clock.setTimer(late, duration);
    hurry.addEventListener("abort", late);
    if (hurry.aborted) late();
    else void promise.then(() => end(true));
  });
}
