import type { Duration } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyText, type ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionTable,
  resolveOptions,
} from "../core/api/options.ts";
import type { Timer } from "../core/clock.ts";
import type {
  EventSource,
  PrimaryEvent,
} from "../core/controller/event_source.ts";
import { BaseSource, type SourceRun } from "./source_run.ts";

type TimerSchedule = Parameters<TimerSource<KubernetesObject>["schedule"]>[1];

const RULES: OptionTable<TimerSchedule, "after" | "every"> = {
  after: "duration?",
  every: "duration?",
};

/** Event source that triggers primaries by the clock. */
export interface TimerSource<P extends KubernetesObject>
  extends EventSource<P, never> {
  /**
   * Schedules runs of a primary, and replaces its earlier schedule. The
   * schedule ends when the primary is deleted. Ignored for an unknown primary.
   *
   * @param key The primary.
   * @param when `after` is the delay of the first run, by default `every`;
   * `every` is the interval of further runs, by default there are none.
   * @throws {TypeError | SyntaxError} If an option is unknown or not a
   * duration.
   * @throws {RangeError} If neither option is given, or the interval is zero.
   */
  schedule(key: ObjectKey | string, when: {
    readonly after?: Duration | undefined;
    readonly every?: Duration | undefined;
  }): void;
  /** Cancels the schedule of a primary. */
  cancel(key: ObjectKey | string): void;
}

/**
 * Creates an event source that triggers primaries by the clock, independently
 * of retries and of `rescheduleAfter`, which each run can set only once.
 *
 * @param name The name of the source, unique within the controller.
 * @throws {TypeError | RangeError} If the name is not a string, or empty.
 *
 * @example Run every hour, in addition to other events
 * ```ts
 * import { Operator } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { timerSource } from "@coracle/operator/sources";
 *
 * const hourly = timerSource<ConfigMap>("hourly");
 * const operator = new Operator();
 * operator.register(ConfigMap, {
 *   reconcile({ metadata }, ctx) {
 *     if (ctx.cause.type === "added") hourly.schedule(metadata, { every: "1h" });
 *   },
 * }, { sources: [hourly] });
 * ```
 */
export function timerSource<P extends KubernetesObject>(
  name: string,
): TimerSource<P> {
  checkOption(name, "name", { name: "name", subject: "timerSource()" });
  return new Timers(name);
}

class Timers<P extends KubernetesObject> extends BaseSource<P>
  implements TimerSource<P> {
  readonly #timers: Map<string, Timer> = new Map();

  override async stop(): Promise<void> {
    await super.stop();
    this.#timers.clear();
  }

  onPrimary({ type, key }: PrimaryEvent<P>): void {
    if (type === "deleted") this.cancel(key);
  }

  schedule(key: ObjectKey | string, when: TimerSchedule): void {
    checkOptions(when, RULES, `the timer source "${this.name}"`);
    const { every, after = every } = resolveOptions(when, RULES);
    if (after === undefined || every === 0) {
      throw new RangeError(
        `Cannot schedule a timer: "after" or an "every" longer than zero is needed: received ${
          JSON.stringify(when)
        }`,
      );
    }
    this.cancel(key);
    const { run } = this;
    const text = textOf(key);
    if (run?.context.primaries.has(text)) this.#arm(run, text, after, every);
  }

  cancel(key: ObjectKey | string): void {
    const text = textOf(key);
    this.#timers.get(text)?.cancel();
    this.#timers.delete(text);
  }

  #arm(
    run: SourceRun<P>,
    key: string,
    after: number,
    every: number | undefined,
  ): void {
    this.#timers.set(
      key,
      run.after(after, () => {
        this.#timers.delete(key);
        if (every !== undefined) this.#arm(run, key, every, every);
        run.context.trigger(key);
      }),
    );
  }
}

function textOf(key: ObjectKey | string): string {
  return typeof key === "string" ? key : keyText(key);
}
