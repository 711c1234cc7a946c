import { ApiError } from "../../core/api/api_error.ts";
import type { Kind } from "../../core/api/kind.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { systemClock } from "../../core/clock.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  type ReconcileResult,
  removeFinalizer,
} from "../../core/controller/result.ts";
import { type LinkedSignal, linkedSignal } from "../../core/linked_signal.ts";
import { type Cadence, onEvents } from "./cadence.ts";
import {
  type Condition,
  type ConditionMoment,
  findCondition,
  type NewCondition,
  READY,
  RECONCILING,
  removeCondition,
  setCondition,
} from "./condition.ts";
import { finalConditions, withFailure } from "./final_conditions.ts";
import { Stalled, Waiting, withoutUrlQueries } from "./outcome.ts";
import { newsOf } from "./pass_news.ts";
import {
  errorText,
  isInterruption,
  type ProgressOptions,
  runFailing,
  runSteps,
  type Step,
  type StepContext,
  type StepsEnd,
} from "./pass_step.ts";
import { requestsOf } from "./requests.ts";
import { recordRequests, tellOutcome } from "./result_processor.ts";
import { progressiveStatus } from "./result_finalizer.ts";
import { finish, type Settled } from "./settle.ts";
import { SharedStatus } from "./shared_status.ts";
import { accessByContext } from "./status_access.ts";
import type { Conditioned } from "./status_lint.ts";
import {
  ownedTypes,
  readyRolls,
  type SummarizedDefinition,
} from "./summarized_definition.ts";

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
