import type { KubernetesObject } from "../api/object.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import { TimeSlice } from "../cache/watch/time_slice.ts";
import type { AddOptions } from "../queue/queue_options.ts";
import type { RetryPolicy } from "../queue/retry_policy.ts";
import { SchedulingQueue } from "../queue/scheduling_queue.ts";
import type {
  DeletedPrimary,
  EventProcessorOptions,
} from "./event_processor_options.ts";
import type { SourceEvent } from "./event_source.ts";
import { guardedLimiter, guardedObserver, guardedRetry } from "./guarded.ts";
import {
  ADDED,
  addedCause,
  bySource,
  byWatch,
  DELETED,
  INITIAL,
  INTERVAL,
  queuedCause,
  REQUESTED,
  RESCHEDULE,
  RETRY,
} from "./queued_cause.ts";
import { type AbortCause, keyAlone, Run, type RunResult } from "./run.ts";
import type { RunObserver } from "./run_observer.ts";
import {
  decideAfterRun,
  decideEvent,
  FRESH,
  isLeaving,
  type RunPlan,
  type RunState,
  willRetry,
} from "./run_state.ts";
import { Throttle } from "./throttle.ts";
import { Waiters } from "./waiters.ts";

/**
 * Turns events into runs: what an event means for its object, which object runs
 * when, and what follows a run. It decides by `run_state.ts` and schedules by
 * the queue; what a run does is the dispatcher's business.
 *
 * Guarantees
 * - One object has at most one run at a time, over deletion and re-creation,
 *   stop and start, and changes of namespaces.
 * - A run that ends late, about an object that is gone, changes nothing.
 * - While it is paused events are collected; nothing runs.
 */
export class EventProcessor<P extends KubernetesObject> {
  readonly #options: EventProcessorOptions<P>;
  readonly #queue: SchedulingQueue;
  /** What is remembered of objects; only of those with anything. */
  readonly #states: Map<string, RunState> = new Map();
  readonly #runs: Map<string, Run<P>> = new Map();
  readonly #deleted: Map<string, DeletedPrimary<P>> = new Map();
  readonly #observer: Required<RunObserver<P>>;
  readonly #retry: RetryPolicy;
  readonly #slice: TimeSlice;
  #paused = true;
  #pumping = false;
  readonly #throttle: Throttle;
  readonly #idle: Waiters = new Waiters();
  /** Who waits for the next run to end. */
  readonly #ended: Waiters = new Waiters();

  /** @param options What it works with. */
  constructor(options: EventProcessorOptions<P>) {
    const { clock, settings, observers, onFault } = options;
    const { retry, limiter, throughput: bucket } = settings;
    const onReady = () => this.#pump();
    this.#options = options;
    this.#observer = guardedObserver(observers, onFault);
    this.#retry = guardedRetry(retry, onFault);
    this.#slice = new TimeSlice(clock);
    this.#throttle = new Throttle({ bucket, clock, onReady });
    this.#queue = new SchedulingQueue({
      clock,
      limiter: limiter && guardedLimiter(limiter, onFault),
      onReady,
    });
  }

  /** How many objects wait for their turn. */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /** How many objects will run at a set time. */
  get delayed(): number {
    return this.#queue.delayed;
  }

  /** The runs that there are. */
  get runs(): Iterable<Run<P>> {
    return this.#runs.values();
  }

  /** How many runs there are. */
  get running(): number {
    return this.#runs.size;
  }

  /** How many objects have used up their retries. */
  get exhausted(): number {
    return [...this.#states.values()].filter((state) => state.exhausted).length;
  }

  /** What is remembered of an object. */
  stateOf(key: string): RunState {
    return this.#states.get(key) ?? FRESH;
  }

  /** A primary was added or changed, and the filters accepted it. */
  primaryChanged(event: CacheEvent<P>): void {
    const { key, header } = event;
    if (!this.#options.shard.owns(key)) return;
    const deleting = header.deletionTimestamp !== undefined;
    switch (decideEvent(this.stateOf(key), { deleting })) {
      case "ignore":
        return;
      case "runAfresh":
        this.#states.delete(key);
    }
    const run = this.#runs.get(key);
    if (
      deleting && run?.step === "reconcile" && !this.#options.settings.allEvents
    ) {
      run.abort("deletion");
    }
    this.#add(key, byWatch(event));
  }

  /** A primary is gone. */
  primaryDeleted(event: DeletedPrimary<P> & { readonly key: string }): void {
    const { key } = event;
    this.#runs.get(key)?.abort("deletion");
    if (!this.#options.settings.allEvents) {
      this.forget(key);
      return;
    }
    if (!this.#options.shard.owns(key)) return;
    const { object, finalStateUnknown } = event;
    this.#deleted.set(key, { object, finalStateUnknown });
    this.#add(key, DELETED);
  }

  /** Something that a primary depends on changed. */
  triggered(key: string, source: string, event: SourceEvent): void {
    if (!this.#isKnown(key)) return;
    if (decideEvent(this.stateOf(key), undefined) === "ignore") return;
    this.#add(key, bySource(source, event));
  }

  /** The program wants a run. */
  requested(key: string): void {
    if (!this.#isKnown(key) || this.stateOf(key).leaving) return;
    this.#states.delete(key);
    this.#add(key, REQUESTED);
  }

  /**
   * Every primary runs once more, behind what is more urgent.
   *
   * @param isMeant Whether a primary is meant; by default all are.
   */
  resync(isMeant: (key: string) => boolean = () => true): void {
    const { primaries, shard } = this.#options;
    for (const key of primaries.keys()) {
      if (isMeant(key) && shard.owns(key) && !this.stateOf(key).leaving) {
        this.#queue.add(key, INITIAL);
      }
    }
  }

  /**
   * Forgets what is not ours any more.
   *
   * @returns Fulfilled when nothing of it runs.
   */
  async yieldOthers(): Promise<void> {
    const { primaries, shard } = this.#options;
    for (const keys of [primaries.keys(), this.#deleted.keys()]) {
      for (const key of keys) {
        if (!shard.owns(key)) this.forget(key, "shard");
      }
    }
    while ([...this.#runs.keys()].some((key) => !shard.owns(key))) {
      await this.#ended.next();
    }
  }

  /** Nothing is remembered of a primary any more, and nothing waits for it. */
  forget(key: string, cause: AbortCause = "deletion"): void {
    this.#runs.get(key)?.abort(cause);
    this.#states.delete(key);
    this.#deleted.delete(key);
    this.#queue.remove(key);
    this.#observer.forgotten(key);
  }

  /** Begins to run what waits. */
  resume(): void {
    this.#paused = false;
    this.#pump();
  }

  /** Begins no more runs. */
  pause(): void {
    this.#paused = true;
    this.#throttle.cancel();
    this.#options.cap.forget(this.#pump);
  }

  /** Asks all runs to end. */
  abortAll(cause: AbortCause): void {
    for (const run of this.#runs.values()) run.abort(cause);
  }

  /** Fulfilled when nothing runs. */
  whenIdle(): Promise<void> {
    return this.#runs.size === 0 ? Promise.resolve() : this.#idle.next();
  }

  /** Forgets everything. Runs that do not end keep only their own key. */
  clear(): void {
    this.#queue.clear();
    this.#states.clear();
    this.#deleted.clear();
  }

  /** Asks for a run, and tells the one under way, which may be waiting. */
  #add(key: string, how: AddOptions): void {
    this.#queue.add(key, how);
    if (this.#runs.size > 0) this.#runs.get(key)?.interrupt(addedCause(how));
  }

  #isKnown(key: string): boolean {
    const { primaries, shard } = this.#options;
    return shard.owns(key) && (primaries.has(key) || this.#deleted.has(key));
  }

  /** Runs what waits, soon: never within the call that made it wait. */
  readonly #pump = (): void => {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(async () => {
      while (this.#takeOne()) {
        // Runs that end at once must not keep I/O from its turn.
        if (this.#slice.step(0)) await this.#slice.rest();
      }
      this.#pumping = false;
      this.#options.cap.offer();
    });
  };

  #takeOne(): boolean {
    const { settings, cap } = this.#options;
    if (
      this.#paused || this.#queue.waiting === 0 ||
      this.#queue.running >= settings.concurrency || !cap.acquire(this.#pump)
    ) return false;
    const slot = this.#throttle.admit() ? this.#queue.take() : -1;
    if (slot < 0) {
      cap.release();
      return false;
    }
    let run: Run<P> | undefined;
    try {
      run = this.#begin(slot);
    } catch (error) {
      this.#options.onFault("begin a run", error);
    }
    if (run === undefined) this.#end(slot);
    else this.#execute(slot, run);
    return true;
  }

  /** Makes the run of a taken slot; undefined if its object is gone or leaving. */
  #begin(slot: number): Run<P> | undefined {
    const { primaries, shard, settings, clock } = this.#options;
    const key = this.#queue.key(slot);
    const deleted = this.#deleted.get(key);
    const isUnread = deleted === undefined && settings.selection.bounded;
    const primary = deleted?.object ??
      (isUnread ? keyAlone(primaries, key) : primaries.get(key));
    if (primary === undefined || !shard.owns(key)) {
      this.#states.delete(key);
      return undefined;
    }
    if (isLeaving(this.stateOf(key), primary)) return undefined;
    const { attempt } = this.stateOf(key);
    const now = clock.now();
    // The run is what a planned retry waited for.
    if (this.#states.has(key)) this.#queue.setTimer(slot, Infinity);
    return new Run({
      key,
      primary,
      isUnread,
      cause: queuedCause(this.#queue, slot),
      retry: { attempt, last: attempt >= settings.retry.maxAttempts },
      deleted: deleted !== undefined,
      finalStateUnknown: deleted?.finalStateUnknown ?? false,
      startedAt: now,
      waited: now - this.#queue.addedAt(slot),
      queue: this.#queue,
      slot,
    });
  }

  #execute(slot: number, run: Run<P>): void {
    const { settings, clock, dispatch } = this.#options;
    this.#runs.set(run.key, run);
    if (settings.timeout !== Infinity) run.limit(clock, settings.timeout);
    this.#observer.started(run);
    const result = dispatch(run);
    if (result instanceof Promise) void this.#finishLater(slot, run, result);
    else this.#finish(slot, run, result);
  }

  async #finishLater(
    slot: number,
    run: Run<P>,
    result: Promise<RunResult>,
  ): Promise<void> {
    this.#finish(slot, run, await result);
  }

  #finish(slot: number, run: Run<P>, result: RunResult): void {
    run.ended();
    this.#runs.delete(run.key);
    const plan = this.#conclude(slot, run, result);
    this.#observer.ended(run, result, plan);
    this.#end(slot);
  }

  #end(slot: number): void {
    this.#queue.done(slot);
    this.#options.cap.release();
    this.#ended.tell();
    if (this.#runs.size === 0) this.#idle.tell();
    if (this.#queue.waiting > 0) this.#pump();
  }

  /** Decides and sets up what follows a run, if its object is still the same. */
  #conclude(
    slot: number,
    run: Run<P>,
    { end }: RunResult,
  ): RunPlan | undefined {
    const { settings, clock, random } = this.#options;
    const { key } = run;
    if (!this.#queue.isCurrent(slot)) return undefined;
    if (
      end.type === "failed" && run.aborted !== undefined &&
      run.aborted !== "timeout"
    ) {
      // It was not given the time to succeed: that is no failure. Whoever
      // aborted it has a reason for another run, except when nobody else comes.
      if (run.aborted !== "deletion") this.#queue.add(key, INITIAL);
      return undefined;
    }
    const plan = decideAfterRun(this.stateOf(key), end, {
      now: clock.now(),
      eventWaiting: this.#queue.isDirty(slot),
      retry: this.#retry,
      random: random(),
      maxInterval: settings.maxInterval,
    });
    if (run.deleted && !willRetry(plan)) {
      this.#deletionReconciled(slot, key);
      return plan;
    }
    if (plan.state === FRESH) this.#states.delete(key);
    else this.#states.set(key, plan.state);
    this.#queue.setTimer(
      slot,
      plan.timerAt,
      plan.timerCause === "retry" ? RETRY : INTERVAL,
    );
    if (plan.visitAt !== undefined) {
      this.#queue.setVisit(slot, plan.visitAt, RESCHEDULE);
    }
    const paused = run.pause > 0 ? clock.now() + run.pause : 0;
    const held = Math.max(plan.holdUntil, paused);
    if (held > 0) this.#queue.hold(slot, held);
    return plan;
  }

  /** The last run of a deleted object: what was made anew is another one. */
  #deletionReconciled(slot: number, key: string): void {
    this.#states.delete(key);
    this.#deleted.delete(key);
    this.#queue.setTimer(slot, Infinity);
    this.#queue.setVisit(slot, Infinity);
    if (this.#options.primaries.has(key)) this.#queue.add(key, ADDED);
    else this.#observer.forgotten(key);
  }
}
