import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { Context } from "../../core/controller/context.ts";
import type {
  MaybePromise,
  Reconciler,
} from "../../core/controller/reconciler.ts";
import type { RetryPolicyOptions } from "../../core/queue/retry_policy.ts";
import {
  checkSummarized,
  errorText,
  isInterruption,
  ownedTypes,
  type ProgressOptions,
  readyRolls,
  recordRequests,
  runFailing,
  runSteps,
  type Step,
  type StepContext,
  type StepsEnd,
  type SummarizedDefinition,
  tellOutcome,
} from "./summarized_definition.ts";
import {
  type Condition,
  type Conditioned,
  type ConditionMoment,
  findCondition,
  type NewCondition,
  READY,
  RECONCILING,
  removeCondition,
  sameState,
  setCondition,
} from "./condition.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import {
  type Cadence,
  finish,
  onEvents,
  PROGRESSING_WITH_RETRY,
  progressiveStatus,
  recovered,
  type Settled,
} from "./reconcile_result.ts";
import { isOutcome, Stalled, Waiting, withoutUrlQueries } from "./outcome.ts";
import { ApiError } from "../../core/api/api_error.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { systemClock } from "../../core/clock.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  type ReconcileResult,
  removeFinalizer,
} from "../../core/controller/result.ts";
import { type LinkedSignal, linkedSignal } from "../../core/signals.ts";
import { requestsOf } from "./requests.ts";
import { accessByContext, SharedStatus } from "./shared_status.ts";

/**
 * How failed passes are best repeated by who looks at the world at intervals:
 * for ever, with pauses from 750 ms to 15 minutes. It is the rhythm of Flux'
 * controllers.
 */
export const persistentRetry: RetryPolicyOptions = Object.freeze({
  initial: "750ms",
  multiplier: 2,
  max: "15m",
  maxAttempts: Infinity,
});

/**
 * A reconciler that is a list of steps, and whose status tells the truth about
 * them: by the end of each pass Ready, Reconciling and Stalled say what it came
 * to, to people, to kubectl and to every program that reads conditions as
 * kstatus does.
 *
 * One pass
 * 1. says Reconciling, and writes that before any slow work if the generation is
 *    new, whereupon Ready is Unknown, or if somebody asks for a run;
 * 2. runs the steps, until one throws or asks for another run;
 * 3. has the processors look at how they ended;
 * 4. decides by {@linkcode finish} what that means for the conditions, for the
 *    next run and for the error;
 * 5. writes by {@linkcode SharedStatus} what has changed of the object: its
 *    conditions, its metadata and spec, its status;
 * 6. tells what is news.
 *
 * The generation that conditions and `status.observedGeneration` name is the one
 * that the pass has seen. A pass that is ended from outside, by a stop or the
 * loss of leadership, writes nothing. What an error says is written without the
 * queries of URLs, which may hold secrets.
 *
 * Give the controller {@linkcode persistentRetry}, and the annotation that asks
 * for a run as `requestAnnotations`.
 *
 * @param kind The kind of the objects; its status needs `conditions` and
 * `observedGeneration`, and `lastHandledReconcileAt` if people may ask for runs.
 * @param definition What is known beside the steps.
 * @param steps In their order.
 * @throws {TypeError | RangeError} If the kind is none, a step is no function, or
 * anything of the definition is unknown, missing or makes no sense.
 *
 * @example A certificate that is renewed
 * ```ts
 * import type { Kind } from "@coracle/operator/core";
 * import {
 *   type Conditioned,
 *   every,
 *   Stalled,
 *   summarized,
 * } from "@coracle/operator/workflows";
 *
 * interface Certificate extends Conditioned {
 *   spec: { host: string };
 * }
 * const kind: Kind<Certificate> = {
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Certificate",
 * };
 * const reconciler = summarized(
 *   kind,
 *   { cadence: () => every("1h") },
 *   [(pass) => {
 *     if (!pass.object.spec.host.includes(".")) {
 *       throw new Stalled("InvalidHost", "spec.host is no name of a host");
 *     }
 *     pass.set({ type: "Issued", status: "True", reason: "Done" });
 *   }],
 * );
 * if (reconciler.cleanup !== undefined) throw new Error("Unexpected finalizer");
 * ```
 */
export function summarized<P extends Conditioned>(
  kind: Kind<P>,
  definition: SummarizedDefinition<P>,
  steps: readonly Step<P>[],
): Reconciler<P> {
  checkKind(kind, "a summarized reconciler");
  checkSummarized(definition, steps);
  const { cleanup } = definition;
  const reconcile: Reconciler<P>["reconcile"] = (object, ctx) =>
    new SummarizedPass(kind, definition, { object, ctx }).run(steps);
  if (cleanup === undefined) return { reconcile };
  return {
    reconcile,
    cleanup: (object, ctx) =>
      new SummarizedPass(kind, definition, { object, ctx }).undo(cleanup),
  };
}

/** What of a pass that has gone well is worth an event. */
export interface NewsOptions<P extends Conditioned> {
  /**
   * What the object has now: a digest or a revision from its status. Another one
   * than before is news.
   */
  readonly revision: (object: P) => string | undefined;
  /**
   * The reason of the event about a new revision.
   *
   * @default {"NewArtifact"}
   */
  readonly reason?: string | undefined;
  /**
   * What the event says.
   *
   * @default {`Has <revision>`}
   */
  readonly message?: ((object: P) => string) | undefined;
  /**
   * The types of conditions that tell failures: their end is news, too.
   *
   * @default {[]}
   */
  readonly failures?: readonly string[] | undefined;
}

/** What the options of news must be. */
export const NEWS_RULES: OptionRules<NewsOptions<never>> = {
  revision: "function",
  reason: "name?",
  message: "function?",
  failures: "strings?",
};

/** One thing to tell. */
export interface News {
  /** Why, as one word for programs. */
  readonly reason: string;
  /** Why, as a sentence for people. */
  readonly message: string;
}

/**
 * What is new after a pass that did not fail: another revision, or the end of a
 * failure. Nothing is told of a pass that only found everything as it was, so
 * that events stay worth reading.
 *
 * @param before The object as the pass was given it.
 * @param after The object as the pass left it.
 * @param options What counts.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 */
export function newsOf<P extends Conditioned>(
  before: P,
  after: P,
  options: NewsOptions<P>,
): News | undefined {
  checkOptions(options, NEWS_RULES, "newsOf()");
  const { revision, reason = "NewArtifact", failures = [] } = options;
  const now = revision(after);
  if (now === undefined) return undefined;
  const message = options.message?.(after) ?? `Has ${now}`;
  if (revision(before) !== now) return { reason, message };
  const conditions = (object: P): readonly Condition[] =>
    object.status?.conditions ?? [];
  return recovered(conditions(before), conditions(after), failures)
    ? { reason: SUCCEEDED.reason, message }
    : undefined;
}

/** Has Ready speak for an error that no condition of its own tells of. */
export function withFailure(
  conditions: readonly Condition[],
  error: unknown,
  moment: ConditionMoment,
): readonly Condition[] {
  const ready = findCondition(conditions, READY);
  if (error === undefined || ready?.reason !== PROGRESSING_WITH_RETRY) {
    return conditions;
  }
  const reason = isOutcome(error) ? error.reason : "Failed";
  return setCondition(
    conditions,
    { type: READY, status: "False", reason, message: errorText(error) },
    moment,
  );
}

/**
 * The conditions as they are written: without what URLs in them may hide, and
 * with the time of old where, since they were written last, the pass has all in
 * all changed nothing.
 */
export function finalConditions(
  before: readonly Condition[],
  after: readonly Condition[],
): Condition[] {
  return after.map((condition) => {
    const old = findCondition(before, condition.type);
    if (old !== undefined && sameState(old, condition)) {
      return { ...condition, lastTransitionTime: old.lastTransitionTime };
    }
    const message = withoutUrlQueries(condition.message);
    const clean = { ...condition, message };
    return old !== undefined && sameState(old, clean)
      ? { ...clean, lastTransitionTime: old.lastTransitionTime }
      : clean;
  });
}

/** What Ready says after a success of which nothing else tells. */
const SUCCEEDED = {
  reason: "Succeeded",
  message: "Everything is as asked for",
} as const;

/** The pass has said itself which generation it has observed. */
const NOT_OBSERVED = noUpdate({ observed: false });

/** What one pass is about. */
interface PassSubject<P extends Conditioned> {
  readonly object: P;
  readonly ctx: Context<P>;
}

/** One pass of a `summarized` reconciler over one object. */
export class SummarizedPass<P extends Conditioned> implements StepContext<P> {
  readonly object: P;
  readonly ctx: Context<P>;
  readonly requested: boolean;
  readonly forced: boolean;
  readonly #definition: SummarizedDefinition<P>;
  readonly #status: SharedStatus<P>;
  readonly #dealtWith: { failures: Set<string>; set: Set<string> } = {
    failures: new Set(),
    set: new Set(),
  };
  /** The types of conditions for which the view of the pass wins. */
  readonly #owned: string[];
  /** The object as the pass was given it. */
  readonly #before: P;
  /** Ready as the pass found or made it before its first step. */
  #readyAtFirst: Condition | undefined;
  #waiting: LinkedSignal | undefined;

  /**
   * @param kind The kind of the object.
   * @param definition What is known of the reconciler.
   * @param subject The object and its run.
   */
  constructor(
    kind: Kind<P>,
    definition: SummarizedDefinition<P>,
    { object, ctx }: PassSubject<P>,
  ) {
    const { clock, requests } = definition;
    this.object = object;
    this.ctx = ctx;
    this.#definition = definition;
    this.#owned = [...ownedTypes(definition)];
    this.#status = new SharedStatus(object, {
      access: accessByContext(kind, ctx),
      owned: this.#owned,
      clock,
    });
    this.#before = this.#status.base;
    const asked = requestsOf(object, object.status, requests);
    this.requested = asked.requested;
    this.forced = asked.forced;
  }

  get signal(): AbortSignal {
    return this.ctx.signal;
  }

  get waitSignal(): AbortSignal {
    this.#waiting ??= linkedSignal(this.ctx.signal, this.ctx.interrupted);
    return this.#waiting.signal;
  }

  set(condition: NewCondition): void {
    this.#own(condition.type, "set");
    this.#conditions = setCondition(
      this.#conditions,
      condition,
      this.#moment(),
    );
  }

  remove(type: string): void {
    this.#own(type);
    this.#conditions = removeCondition(this.#conditions, type);
  }

  failing<T>(
    words: { readonly type: string; readonly reason: string },
    body: () => MaybePromise<T>,
  ): Promise<T> {
    this.#own(words.type, "failures");
    return runFailing(this, words, body);
  }

  async progress(
    message: string,
    { reason = "Progressing", drift }: ProgressOptions = {},
  ): Promise<void> {
    const isOld = this.#isReadyOld;
    this.#conditions = progressiveStatus(
      this.#conditions,
      { reason, message: withoutUrlQueries(message), drift },
      this.#moment(),
    );
    // Progress says nothing about how the pass will end.
    if (isOld) this.#readyAtFirst = findCondition(this.#conditions, READY);
    await this.#status.write(this.object);
  }

  /** The pass over an object that is there. */
  async run(steps: readonly Step<P>[]): Promise<ReconcileResult<never, never>> {
    const suspended = this.#definition.suspended?.(this.object) ?? false;
    try {
      await (suspended ? this.#rest() : this.#begin());
    } catch (failure) {
      if (this.#isGone(failure)) return NOT_OBSERVED;
      throw failure;
    }
    if (suspended) return NOT_OBSERVED;
    const settled = await this.#finish(await this.#end(steps));
    if (settled === undefined) return NOT_OBSERVED;
    this.#tellNews();
    const { after } = settled.next;
    return after === undefined
      ? NOT_OBSERVED
      : NOT_OBSERVED.rescheduleAfter(after);
  }

  /** The pass over an object that is to vanish. */
  async undo(steps: readonly Step<P>[]): Promise<CleanupResult> {
    this.#say("Undoing what was asked for");
    const end = await this.#end(steps);
    if (end.error === undefined && end.result !== "requeue") {
      return removeFinalizer();
    }
    const settled = await this.#finish(end);
    const after = settled?.next.after;
    return after === undefined
      ? keepFinalizer()
      : keepFinalizer().rescheduleAfter(after);
  }

  get #conditions(): readonly Condition[] {
    return this.object.status?.conditions ?? [];
  }

  set #conditions(conditions: readonly Condition[]) {
    this.object.status ??= {};
    this.object.status.conditions = [...conditions];
  }

  #moment(): ConditionMoment {
    const { clock = systemClock } = this.#definition;
    const { generation } = this.object.metadata;
    return { now: clock.wallTime(), generation };
  }

  /** Notes that a condition is the business of the pass. */
  #own(type: string, as?: "set" | "failures"): void {
    if (!this.#owned.includes(type)) this.#owned.push(type);
    const { failures, set } = this.#dealtWith;
    if (as === "failures") failures.add(type);
    else if (as === "set" && !failures.has(type) && type !== READY) {
      set.add(type);
    }
  }

  /** Says that work begins; at once if somebody waits to see that it does. */
  async #begin(): Promise<void> {
    const { generation } = this.object.metadata;
    const observed = this.object.status?.observedGeneration;
    const isNew = generation !== undefined && generation !== observed;
    // What was ready for another generation says nothing about this one.
    this.#say(
      isNew
        ? `Working towards generation ${generation}`
        : "Looking whether everything is as asked for",
      { drift: isNew && !this.#isToldBefore() },
    );
    if (this.requested || (isNew && !this.#isToldBefore())) {
      await this.#status.write(this.object);
    }
  }

  /** Says that nobody is at work. */
  async #rest(): Promise<void> {
    this.remove(RECONCILING);
    await this.#status.write(this.object);
  }

  /** Says what goes on, in memory. */
  #say(message: string, { drift }: Pick<ProgressOptions, "drift"> = {}): void {
    this.#conditions = progressiveStatus(
      this.#conditions,
      { reason: "Progressing", message, drift },
      this.#moment(),
    );
    this.#readyAtFirst = findCondition(this.#conditions, READY);
  }

  /** Whether a pass before has said already that this generation is worked on. */
  #isToldBefore(): boolean {
    const told = findCondition(
      this.#before.status?.conditions ?? [],
      RECONCILING,
    );
    return told?.status === "True" &&
      told.observedGeneration === this.object.metadata.generation;
  }

  /** Runs the steps. What is aborted from outside is thrown: nobody is told. */
  async #end(steps: readonly Step<P>[]): Promise<StepsEnd> {
    try {
      const end = await runSteps(steps, this);
      if (end.error === undefined) return end;
      if (this.signal.aborted) throw end.error;
      if (!isInterruption(end.error, this.waitSignal)) return end;
      // Not a word about it: the next run follows at once.
      const waiting = new Waiting("Interrupted", errorText(end.error), {
        event: "None",
        log: false,
        cause: end.error,
      });
      return { result: end.result, error: waiting };
    } finally {
      this.#waiting?.unlink();
    }
  }

  /**
   * Sums up, and writes.
   *
   * @returns Undefined if the object is gone.
   */
  async #finish(stepsEnd: StepsEnd): Promise<Settled | undefined> {
    const { end, cadence } = this.#paced(stepsEnd);
    await this.#process(end);
    const { gates, succeeded = SUCCEEDED } = this.#definition;
    const moment = this.#moment();
    const settled = finish(this.#withoutOldReady(end), end, {
      cadence,
      moment,
      rolls: readyRolls(this.#definition, this.#dealtWith),
      gates,
      succeeded,
    });
    const told = withFailure(settled.conditions, end.error, moment);
    this.#conditions = finalConditions(
      this.#status.base.status?.conditions ?? [],
      told,
    );
    const { observed, error } = settled;
    try {
      await this.#status.write(this.object, { observed });
    } catch (failure) {
      if (this.#isGone(failure)) return undefined;
      if (error === undefined) throw failure;
      throw new AggregateError(
        [error, failure],
        `Cannot end the pass over ${
          keyText(keyOf(this.object))
        }: it failed, and its status could not be written: received ${
          errorText(error)
        }; ${errorText(failure)}`,
      );
    }
    if (error !== undefined) throw error;
    return settled;
  }

  /**
   * The end of a pass, and the pace of its object. A pace that cannot be read,
   * such as an interval that a person has misspelled, is theirs to correct.
   */
  #paced(end: StepsEnd): { readonly end: StepsEnd; readonly cadence: Cadence } {
    try {
      return { end, cadence: this.#definition.cadence(this.object) };
    } catch (error) {
      const stalled = new Stalled("InvalidCadence", errorText(error), {
        cause: error,
      });
      const { error: first = stalled } = end;
      return { end: { result: "empty", error: first }, cadence: onEvents() };
    }
  }

  /** Whether no step has said anything of Ready. */
  get #isReadyOld(): boolean {
    return findCondition(this.#conditions, READY) === this.#readyAtFirst;
  }

  /** Ready of before says nothing about a success that nothing else tells of. */
  #withoutOldReady(end: StepsEnd): readonly Condition[] {
    const list = this.#conditions;
    return this.#isReadyOld && end.error === undefined &&
        end.result === "success"
      ? removeCondition(list, READY)
      : list;
  }

  async #process(end: StepsEnd): Promise<void> {
    const { requests, notifier, processors = [] } = this.#definition;
    const { object, ctx } = this;
    const report = { ...end, object, ctx, before: this.#before };
    const all = [
      recordRequests<P>(requests),
      tellOutcome<P>(notifier),
      ...processors,
    ];
    for (const process of all) {
      try {
        await process(report);
      } catch (error) {
        ctx.log.warn("A result processor has thrown", { error });
      }
    }
  }

  #tellNews(): void {
    const { news, notifier } = this.#definition;
    if (news === undefined) return;
    const found = newsOf(this.#before, this.object, news);
    if (found === undefined) return;
    this.ctx.events.normal(found.reason, found.message);
    notifier?.notify(this.object, { severity: "info", ...found });
  }

  /**
   * Whether a write failed since the object, or its incarnation, is gone. An
   * answer that names no object means that the kind has no status to write.
   */
  #isGone(failure: unknown): boolean {
    if (failure instanceof AggregateError) {
      return failure.errors.every((error) => this.#isGone(error));
    }
    return ApiError.is(failure) && failure.isNotFound &&
      failure.details?.name === this.object.metadata.name;
  }
}
