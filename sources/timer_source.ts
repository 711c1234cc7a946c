import { type Duration, milliseconds } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyText, type ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/options.ts";
import type { Timer } from "../core/clock.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { SourceRun } from "./source_run.ts";

/** When a primary is triggered. */
export interface TimerSchedule {
  /**
   * How long from now.
   *
   * @default {`every`}
   */
  readonly after?: Duration | undefined;
  /**
   * How long between two triggers.
   *
   * @default {only once}
   */
  readonly every?: Duration | undefined;
}

const RULES: OptionRules<TimerSchedule> = {
  after: "duration?",
  every: "duration?",
};

/** A source that triggers primaries by the clock. */
export interface TimerSource<P extends KubernetesObject>
  extends EventSource<P, never> {
  /**
   * Triggers a primary at a time, or again and again; what was scheduled for it
   * before is replaced. It ends when the primary is deleted.
   *
   * @throws {TypeError | SyntaxError} If a time is unknown, or no duration.
   * @throws {RangeError} If neither time is given, or an interval is zero.
   */
  schedule(key: ObjectKey | string, when: TimerSchedule): void;
  /** Forgets what was scheduled for a primary. */
  cancel(key: ObjectKey | string): void;
}

/**
 * Triggers primaries by the clock, independent of retries and `rescheduleAfter`,
 * of which each run has only one.
 *
 * @param name Unique within the controller.
 * @throws {TypeError | RangeError} If the name is no text, or empty.
 *
 * @example Run every hour, whatever else happens
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
 * if (operator.controllers.length !== 1) throw new Error("Unexpected count");
 * ```
 */
export function timerSource<P extends KubernetesObject>(
  name: string,
): TimerSource<P> {
  return new Timers(name);
}

class Timers<P extends KubernetesObject> implements TimerSource<P> {
  readonly name: string;
  readonly #timers: Map<string, Timer> = new Map();
  #run: SourceRun<P> | undefined;

  constructor(name: string) {
    checkOption(name, "name", { name: "name", subject: "timerSource()" });
    this.name = name;
  }

  start(context: SourceContext<P>): Promise<void> {
    this.#run = new SourceRun(context);
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#run?.end();
    this.#run = undefined;
    this.#timers.clear();
    return Promise.resolve();
  }

  health(): SourceHealth {
    return this.#run?.health ?? { status: "unknown" };
  }

  onPrimary({ type, key }: PrimaryEvent<P>): void {
    if (type === "deleted") this.cancel(key);
  }

  schedule(key: ObjectKey | string, when: TimerSchedule): void {
    checkOptions(when, RULES, `the timer source "${this.name}"`);
    const every = when.every === undefined
      ? undefined
      : milliseconds(when.every, "every");
    const after = when.after === undefined
      ? every
      : milliseconds(when.after, "after");
    if (after === undefined || every === 0) {
      throw new RangeError(
        `Cannot schedule a timer: "after" or an "every" longer than zero is needed: received ${
          JSON.stringify(when)
        }`,
      );
    }
    this.cancel(key);
    const run = this.#run;
    if (run === undefined) return;
    this.#arm(run, textOf(key), { after, every });
  }

  cancel(key: ObjectKey | string): void {
    const text = textOf(key);
    this.#timers.get(text)?.cancel();
    this.#timers.delete(text);
  }

  #arm(
    run: SourceRun<P>,
    key: string,
    { after, every }: {
      readonly after: number;
      readonly every: number | undefined;
    },
  ): void {
    this.#timers.set(
      key,
      run.after(after, () => {
        this.#timers.delete(key);
        if (every !== undefined) this.#arm(run, key, { after: every, every });
        run.context.trigger(key);
      }),
    );
  }
}

function textOf(key: ObjectKey | string): string {
  return typeof key === "string" ? key : keyText(key);
}
