import { kindText } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyOf, keyText } from "../api/object_key.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { StoredWrite } from "./result_writer.ts";
import type { Run } from "./run.ts";
import { WriteLoopDetector } from "./write_loop.ts";

/** What a {@linkcode writeObserver} works with. */
export interface WriteObserverOptions {
  readonly controller: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/**
 * Remembers in each run what it wrote, and slows down objects whose runs write
 * the same again and again.
 */
export function writeObserver<P extends KubernetesObject>(
  options: WriteObserverOptions,
): (run: Run<P>, write: StoredWrite) => void {
  const { controller, clock, log, metrics } = options;
  const detector = new WriteLoopDetector();
  const labels = Object.freeze({ controller });
  const loops = metrics.counter({
    name: "coracle_write_loops_total",
    help: "Writes that were the same as before and did not last.",
  });
  return (run, write) => {
    const { verb, kind, after } = write;
    run.wrote(`${verb} ${kindText(kind)} ${keyText(keyOf(after))}`);
    const { key } = run;
    const loop = detector.observe({ ...write, key, now: clock.now() });
    if (loop === undefined) return;
    run.pause = Math.max(run.pause, loop.pause);
    loops.add(1, labels);
    log.warn(
      "The same is written again and again: somebody sets it back, or the server stores it in another form",
      { object: key, ...loop },
    );
  };
}
