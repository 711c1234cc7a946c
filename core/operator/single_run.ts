import { messageWithCause } from "../error_text.ts";
import type { ManagedController } from "./controller_start.ts";

/** Number of failures that the error of a single run names. */
const NAMED_FAILURES = 5;

/**
 * Waits until each primary and each job of the controllers has had a run. Tasks
 * are not awaited.
 *
 * @throws {AggregateError} If the last run of any of them failed; it names some
 * and has the errors of all.
 */
export async function singleRun(
  controllers: readonly ManagedController[],
): Promise<void> {
  const outcomes = await Promise.all(
    controllers.filter(({ settings }) => !settings.isTask)
      .map(async (controller) => ({
        controller,
        errors: await controller.ranOnce(),
      })),
  );
  const runs = outcomes.flatMap(({ controller: { name, isJob }, errors }) =>
    Array.from(
      errors,
      ([key, error]) => ({ subject: isJob ? name : `${name} ${key}`, error }),
    )
  );
  const failed = runs.filter(({ error }) => error !== undefined);
  if (failed.length === 0) return;
  const named = failed.slice(0, NAMED_FAILURES).map(({ subject, error }) =>
    `${subject} (${messageWithCause(error)})`
  );
  const others = failed.length - named.length;
  throw new AggregateError(
    failed.map(({ error }) => error),
    `Cannot finish the single run: ${failed.length} of ${runs.length} have failed: ${
      named.join("; ")
    }${others > 0 ? ` and ${others} others` : ""}`,
  );
}
