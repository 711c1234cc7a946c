/**
 * The run loop of a controller, in the order of the methods below: an event is
 * added to the queue, a key is taken from the queue, its run begins, is executed
 * by the dispatcher, and is settled. All decisions are pure functions of
 * `run_state.ts`; what a run does is in `dispatcher.ts`.
 *
 * @module
 */
import type { KubernetesObject } from "../../api/object.ts";
import { parseKey } from "../../api/object_key.ts";
import {
  type CacheEvent,
  CurrentEvent,
} from "../../cache/informer/cache_event.ts";
import type { MultiNamespaceInformer } from "../../cache/informer/multi_namespace_informer.ts";
import { TimeSlice } from "../../cache/watch/receive.ts";
import { attempt, guardedRandom } from "../../callback.ts";
import { type Clock, nextTurn, type Timer } from "../../clock.ts";
import { type Logger, unfailingLogger } from "../../logger.ts";
import type { RetryPolicy } from "../../queue/retry_policy.ts";
import {
  type AddOptions,
  type QueueItem,
  SchedulingQueue,
} from "../../queue/scheduling_queue.ts";
import {
  ADDED,
  bySource,
  byWatch,
  DELETED,
  INITIAL,
  QUEUE_CAUSES,
  queuedCause,
  REQUESTED,
  type RunCause,
} from "../cause.ts";
import type { ConcurrencyCap } from "./concurrency_cap.ts";
import type { ControllerSettings } from "../controller_settings.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { PrimaryCache, SourceEvent } from "../event_source.ts";
import {
  accepts,
  type DefaultFilterOptions,
  isRelevantUpdate,
} from "../filters.ts";
import { guardedLimiter, guardedRetry } from "./guarded.ts";
import { type AbortCause, Run, type RunResult, wasCutShort } from "./run.ts";
import type { RunObserver } from "./run_observers.ts";
import {
  decideAfterRun,
  FRESH,
  type RunPlan,
  type RunState,
  willRetry,
} from "./run_state.ts";
import type { ShardAssignment } from "../shard.ts";
import type { FirstRuns } from "./first_runs.ts";
import type { SourceGroup } from "../watch/source_group.ts";
import type { EventHandler } from "../watch/watch_group.ts";

export interface EventProcessorDeps<P extends KubernetesObject> {
  readonly settings: ControllerSettings<P>;
  /** Finalizer of the controller; undefined if it uses none. */
  readonly finalizer: string | undefined;
  readonly primaries:
    & PrimaryCache<P>
    & Pick<MultiNamespaceInformer<P>, "getAt" | "keyAt" | "placeOf">;
  /** Event sources; some follow the changes of primaries. */
  readonly sources: Pick<
    SourceGroup<P>,
    "followsPrimaries" | "primaryChanged" | "primaryEvent"
  >;
  /** Assignment of primaries to this replica; undefined if it runs all of them. */
  readonly shard: ShardAssignment | undefined;
  /** Whether a run may begin; false if this replica may have lost its lease. */
  readonly mayRun: () => boolean;
  /** Whether it had nothing to do for a primary of a snapshot; absent if all run. */
  readonly wasIdle?: ((event: CurrentEvent<P>) => boolean) | undefined;
  readonly dispatcher: Pick<Dispatcher<P>, "dispatch">;
  /** Limit of concurrent runs across controllers; undefined if absent. */
  readonly cap: ConcurrencyCap | undefined;
  readonly clock: Clock;
  /** Random numbers from 0 to below 1, for the jitter of retries. */
  readonly random: () => number;
  readonly observers: readonly RunObserver<P>[];
  readonly log: Logger;
}

/** Maximum number of deletions, the latest, that a paused processor keeps. */
const MAX_PAUSED_DELETIONS = 1_000;

/** Longest time over which failed runs are spread when a source works again. */
const LONGEST_SPREAD_MS = 60_000;

/**
 * Pause between checks of a lease that may have been lost: its next renewal
 * either restores the lease or ends the runs.
 */
const LEASE_CHECK_MS = 1_000;

/** Number of quiet times for which events may delay a run. */
const LONGEST_DEBOUNCE = 10;

/** Minimum duration of a run after which the events of its object are collected. */
const LONG_RUN_MS = 20;
/** Longest time for which they are collected; it is at most a tenth of the run. */
const LONGEST_COLLECTION_MS = 100;
/** Turns of the event loop after which bytes that have arrived are delivered. */
const QUIET_TURNS = 4;

/** Last known state of a deleted primary, kept until its deletion is reconciled. */
type DeletedPrimary<P extends KubernetesObject> = Pick<
  CacheEvent<P>,
  "object" | "finalStateUnknown"
>;

/** What is kept of an object in the row of the queue, while it is not idle. */
class Active<P extends KubernetesObject> {
  /** State of the object between its runs. */
  state: RunState = FRESH;
  /** Run in progress; undefined if none exists. */
  run: Run<P> | undefined;
  /** Deletions to reconcile, oldest first; several if the object was recreated. */
  deleted: DeletedPrimary<P>[] | undefined;

  /** Forgets all but the run. */
  reset(): void {
    this.state = FRESH;
    this.deleted = undefined;
  }
}

/** Taken key of an object. */
type Item<P extends KubernetesObject> = QueueItem<Active<P>>;

/**
 * Run loop of a controller: decides which object runs when, and what follows a
 * run.
 *
 * Guarantees
 * - One object has at most one run at a time, across deletion and re-creation,
 *   stop and start, and changes of namespaces.
 * - A run that ends after its object was deleted changes nothing.
 * - While the processor is paused, events are collected and nothing runs.
 */
export class EventProcessor<P extends KubernetesObject>
  implements EventHandler<P> {
  readonly #deps: EventProcessorDeps<P>;
  readonly #log: Logger;
  readonly #queue: SchedulingQueue<Active<P>>;
  /** Keys of objects that were deleted while the processor is paused, oldest first. */
  readonly #pausedDeletions: Set<string> = new Set();
  readonly #relevance: DefaultFilterOptions;
  readonly #retry: RetryPolicy;
  readonly #random: () => number;
  readonly #slice: TimeSlice;
  /** Whether any primary has another place than at first. */
  #hasMoved = false;
  #paused = true;
  /** Whether runs have been started before. */
  #hasResumed = false;
  #pumping = false;
  /** Whether a token was taken for a run that has not begun. */
  #hasToken = false;
  /** Timer for the next check of the token bucket and the lease. */
  #throttle: Timer | undefined;
  /** Functions that resolve a promise, and return true, once a condition holds. */
  readonly #waiters: Set<() => boolean> = new Set();

  constructor(deps: EventProcessorDeps<P>) {
    const { clock, settings, finalizer } = deps;
    const { retry, limiter } = settings;
    this.#deps = deps;
    this.#log = unfailingLogger(deps.log);
    this.#relevance = { ...settings, finalizer };
    this.#retry = guardedRetry(retry, this.#onFault);
    this.#random = guardedRandom(
      deps.random,
      (error) => this.#onFault("draw a random number", error),
    );
    this.#slice = new TimeSlice(clock);
    this.#queue = new SchedulingQueue({
      clock,
      limiter: guardedLimiter(limiter, this.#onFault),
      onReady: this.#pump,
      keyAt: (place) => deps.primaries.keyAt(place),
      causes: QUEUE_CAUSES,
    });
  }

  // Add: events become keys in the queue.

  onPrimary(event: CacheEvent<P>, place: number): void {
    const { sources } = this.#deps;
    if (sources.followsPrimaries) sources.primaryChanged(event);
    if (event.type === "deleted") this.#primaryDeleted(event, place);
    else if (this.#isAccepted(event)) this.#primaryChanged(event, place);
  }

  onPrimaryLeft(key: string, place: number): void {
    const left = { type: "deleted", key: parseKey(key) } as const;
    this.#deps.sources.primaryEvent({ ...left, object: undefined });
    this.forget(key, "namespace", place);
  }

  onPrimaryMoved(from: number, to: number): void {
    this.#hasMoved = true;
    this.#queue.move(from, to);
  }

  get ignoresRestored(): boolean {
    return this.#deps.wasIdle !== undefined && !this.#hasResumed;
  }

  onTrigger(
    key: string,
    source: string,
    event: SourceEvent & { readonly isRestored?: boolean },
  ): boolean {
    if (!this.#isKnown(key)) return false;
    if (event.isRestored && this.ignoresRestored) return false;
    if (!this.stateOf(key).leaving) {
      const { debounce } = this.#deps.settings;
      if (debounce > 0 && !event.initial) {
        this.#queue.collect(key, debounce, LONGEST_DEBOUNCE * debounce);
      }
      this.#add(key, bySource(source, event));
    }
    return !this.#paused;
  }

  retryFailed(only?: string): void {
    const { clock, settings } = this.#deps;
    const spread = Math.min(
      this.#retry.delay(1, 0.5),
      settings.maxInterval,
      LONGEST_SPREAD_MS,
    );
    const all = only === undefined ? this.#queue.values() : [[only] as const];
    for (const [key] of [...all]) {
      const { failures, ruledOut } = this.stateOf(key);
      if (failures === 0 || ruledOut || !this.#isKnown(key)) continue;
      const at = clock.now() + this.#random() * spread;
      this.#queue.addAt(key, at, "retry");
    }
  }

  /** Adds a run that the program or a run of the object has requested. */
  request(key: string): void {
    if (!this.#isKnown(key) || this.stateOf(key).leaving) return;
    this.#add(key, REQUESTED);
  }

  /**
   * Adds a run of every primary, with the lowest priority.
   *
   * @param isMeant Selects the primaries. Defaults to all.
   */
  resync(isMeant: (key: string) => boolean = () => true): void {
    if (!this.#deps.settings.runsAtStart) return;
    for (const key of this.#deps.primaries.keys()) {
      if (isMeant(key) && this.#owns(key) && !this.stateOf(key).leaving) {
        this.#queue.add(key, INITIAL, this.#deps.primaries.placeOf(key));
      }
    }
  }

  #isAccepted(event: CacheEvent<P>): boolean {
    const { defaultFilters, filters } = this.#deps.settings;
    try {
      // Both may read the object, and a bounded cache may keep only its key.
      return (event.type !== "updated" || !defaultFilters ||
        isRelevantUpdate(event, this.#relevance)) && accepts(filters, event);
    } catch (error) {
      this.#log.warn("A filter has thrown: the event is accepted", {
        object: event.key,
        error,
      });
      return true;
    }
  }

  #primaryChanged(event: CacheEvent<P>, place: number): void {
    const { key } = event;
    if (!this.#owns(key)) return;
    if (
      event.initial && this.#deps.wasIdle !== undefined &&
      event instanceof CurrentEvent && this.#deps.wasIdle(event)
    ) return this.#skip(key, place);
    const deleting = event.header.deletionTimestamp !== undefined;
    const active = this.#queue.valueOf(key);
    if (active !== undefined) {
      if (active.state.leaving) {
        if (deleting) return;
        // Its deletion and re-creation were missed: this is a new object.
        active.state = FRESH;
      }
      if (
        deleting && active.run?.step === "reconcile" &&
        !this.#deps.settings.allEvents
      ) active.run.abort("deletion");
      if (this.#deps.settings.isTask) active.run?.abort("change");
    }
    this.#add(key, byWatch(event), place);
  }

  /** Leaves an object as it was before a restart: only its interval goes on. */
  #skip(key: string, place: number): void {
    // How much of it has passed is not known; the runs are spread over it.
    const left = this.#deps.settings.maxInterval * this.#random();
    const at = this.#deps.clock.now() + left;
    this.#queue.addAt(key, at, "interval", place);
  }

  #primaryDeleted(
    event: DeletedPrimary<P> & { readonly key: string },
    place: number,
  ): void {
    const { key } = event;
    if (place >= 0) this.#queue.clearPlace(place);
    const active = this.#queue.valueOf(key) ?? new Active<P>();
    // A run for the deletion of an earlier object goes on.
    if (active.run?.deleted === false) active.run.abort("deletion");
    const isOurs = this.#owns(key);
    if (isOurs) {
      for (const observer of this.#deps.observers) {
        attempt(() => observer.deleted?.(key), this.#onObserverFault);
      }
    }
    if (!isOurs || !this.#deps.settings.allEvents) {
      this.forget(key);
      return;
    }
    const { object, finalStateUnknown } = event;
    const deleted = active.deleted ??= [];
    if (deleted.at(-1)?.object.metadata.uid !== object.metadata.uid) {
      deleted.push({ object, finalStateUnknown });
    }
    this.#queue.setValue(key, active);
    this.#add(key, DELETED);
    if (!this.#paused) return;
    // A standby replica sees every deletion, and may never run one.
    this.#pausedDeletions.add(key);
    if (this.#pausedDeletions.size > MAX_PAUSED_DELETIONS) {
      const [oldest = key] = this.#pausedDeletions;
      this.forget(oldest);
    }
  }

  /** Adds a key to the queue, and interrupts the current run of the object. */
  #add(key: string, options: AddOptions, known = -1): void {
    const place = known < 0 && (options === INITIAL || this.#queue.hasFirst)
      ? this.#deps.primaries.placeOf(key)
      : known;
    this.#queue.add(key, options, place);
    if (this.#queue.running > 0) {
      this.#queue.valueOf(key)?.run?.interrupt(options.cause as RunCause);
    }
  }

  #owns(key: string): boolean {
    return this.#deps.shard?.owns(key) ?? true;
  }

  #isKnown(key: string): boolean {
    return this.#owns(key) &&
      (this.#deps.primaries.has(key) ||
        this.#queue.valueOf(key)?.deleted !== undefined);
  }

  // Take: keys that are ready get a run, as far as the limits allow.

  /** Start of the runs of ready keys: in a microtask, never within an add. */
  readonly #pump = (): void => {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(async () => {
      try {
        while (this.#takeOne()) {
          // Runs that end synchronously must not starve I/O.
          if (this.#slice.step(0)) await this.#slice.pause();
        }
      } catch (error) {
        this.#onFault("start the next run", error);
      } finally {
        this.#pumping = false;
        this.#deps.cap?.offer();
      }
    });
  };

  #takeOne(): boolean {
    const { settings, cap } = this.#deps;
    if (
      this.#paused || this.#queue.waiting === 0 ||
      this.#queue.running >= settings.concurrency ||
      cap?.acquire(this.#pump) === false
    ) return false;
    const item = this.#isAdmitted() ? this.#queue.take() : undefined;
    if (item === undefined) {
      cap?.release();
      return false;
    }
    this.#hasToken = false;
    let run: Run<P> | undefined;
    try {
      run = this.#begin(item);
    } catch (error) {
      this.#onFault("begin a run", error);
    }
    if (run === undefined) this.#end(item);
    else this.#execute(item, run);
    return true;
  }

  /**
   * Checks the lease of this replica, and takes a token of the controller's
   * bucket; if a run may not begin now, sets a timer for the next check.
   */
  #isAdmitted(): boolean {
    const { settings: { throughput }, clock, mayRun } = this.#deps;
    if (this.#throttle !== undefined) return false;
    const wait = !mayRun()
      ? LEASE_CHECK_MS
      : this.#hasToken
      ? 0
      : throughput?.take(clock.now()) ?? 0;
    if (wait === 0) {
      // If the limiter holds back all keys, the token is that of the next run.
      this.#hasToken = throughput !== undefined;
      return true;
    }
    this.#throttle = clock.setTimer(() => {
      this.#throttle = undefined;
      this.#pump();
    }, wait);
    return false;
  }

  // Begin: a taken key becomes a run.

  /** Creates the run of a queue item, unless its object is deleted or about to be. */
  #begin(item: Item<P>): Run<P> | undefined {
    const { primaries, settings, clock } = this.#deps;
    const { key } = item;
    const active = item.value ??= new Active<P>();
    const deleted = active.deleted?.[0];
    const isUnread = deleted === undefined && settings.selection.bounded;
    const place = deleted === undefined ? primaries.placeOf(key) : -1;
    const cause = queuedCause(item);
    const primary = deleted?.object ??
      (place < 0
        ? undefined
        // Only its key, until it is read.
        : isUnread
        ? { metadata: parseKey(key) } as P
        : primaries.getAt(place, isNewState(cause) ? "read" : "get"));
    if (primary === undefined || !this.#owns(key)) {
      active.reset();
      return undefined;
    }
    const { state, state: { attempt, retryAt } } = active;
    const isDeleting = primary.metadata.deletionTimestamp !== undefined;
    if (state.leaving && isDeleting) return undefined;
    const now = clock.now();
    const last = now >= retryAt && attempt >= settings.retry.maxAttempts;
    // This run replaces a planned retry.
    if (state !== FRESH) this.#queue.setTimer(item, Infinity, "retry");
    return active.run = new Run({
      key,
      place,
      primary,
      isUnread,
      cause,
      retry: { attempt, last },
      deleted: deleted !== undefined,
      finalStateUnknown: deleted?.finalStateUnknown ?? false,
      startedAt: now,
      waited: now - item.addedAt,
      item,
      scheduler: this,
    });
  }

  // Execute: the dispatcher calls the reconciler.

  #execute(item: Item<P>, run: Run<P>): void {
    const { settings, clock, dispatcher } = this.#deps;
    if (settings.timeout !== Infinity) run.limit(clock, settings.timeout);
    this.#observe(run);
    const result = dispatcher.dispatch(run);
    if (result instanceof Promise) {
      void result.then((result) => this.#settle(item, run, result));
    } else this.#settle(item, run, result);
  }

  /** Tells observers of the start of a run, or of its end. */
  #observe(run: Run<P>, result?: RunResult, plan?: RunPlan): void {
    for (const observer of this.#deps.observers) {
      try {
        if (result === undefined) observer.started?.(run);
        else observer.ended?.(run, result, plan);
      } catch (error) {
        this.#onObserverFault(error);
      }
    }
  }

  // Settle: the result decides what follows.

  #settle(item: Item<P>, run: Run<P>, result: RunResult): void {
    run.ended(this.#deps.clock.now());
    const plan = this.#plan(item, run, result);
    this.#observe(run, result, plan);
    this.#end(item);
  }

  /** Plans the next run of an object, unless the object was deleted. */
  #plan(
    item: Item<P>,
    run: Run<P>,
    { end }: RunResult,
  ): RunPlan | undefined {
    const { settings } = this.#deps;
    const { key, endedAt: now } = run;
    const active = item.value as Active<P>;
    active.run = undefined;
    if (item.isRemoved) return undefined;
    if (wasCutShort(run, end)) {
      // An aborted run had no time to succeed, so this is no failure, and if it
      // returned early, no success. After a deletion its event adds the next run;
      // otherwise nothing else would.
      if (run.aborted !== "deletion") this.#queue.add(key, INITIAL);
      return undefined;
    }
    const plan = decideAfterRun(active.state, end, {
      now,
      startedAt: run.startedAt,
      eventWaiting: item.added > 0,
      retry: this.#retry,
      random: this.#random(),
      maxInterval: settings.maxInterval,
    });
    if (run.deleted && !willRetry(plan)) {
      this.#deletionReconciled(item, active);
      return plan;
    }
    active.state = plan.state;
    this.#queue.setTimer(
      item,
      plan.timerAt,
      plan.timerCause,
      // Otherwise the object is where it was, or its run would be removed.
      settings.allEvents || this.#hasMoved
        ? this.#deps.primaries.placeOf(key)
        : run.place,
    );
    if (plan.rescheduleAt !== undefined) {
      this.#queue.reschedule(item, plan.rescheduleAt);
    }
    const held = Math.max(plan.holdUntil, run.pause > 0 ? now + run.pause : 0);
    // While a run waits for the answer to a write, the events are read.
    const since = item.added > 0 ? run.startedAt : run.wroteAt;
    if (held > 0) this.#queue.hold(item, held);
    else if (now - since >= LONG_RUN_MS) {
      void this.#collect(item, now - run.startedAt);
    }
    return plan;
  }

  /**
   * Delays the next run of an object until the events that have arrived during a
   * long run are read: a run that blocked the event loop would otherwise be
   * repeated for each batch of them.
   */
  async #collect(item: QueueItem, duration: number): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() +
      Math.min(duration / 10, LONGEST_COLLECTION_MS);
    this.#queue.hold(item, until);
    for (let quiet = 0; quiet < QUIET_TURNS && clock.now() < until;) {
      const { added } = item;
      await nextTurn();
      quiet = item.added === added ? quiet + 1 : 0;
    }
    this.#queue.release(item, until);
  }

  /** Removes the state of a deleted object; a new one may have its key. */
  #deletionReconciled(item: QueueItem, active: Active<P>): void {
    const { key } = item;
    active.state = FRESH;
    active.deleted?.shift();
    if (active.deleted?.length === 0) active.deleted = undefined;
    this.#queue.setTimer(item, Infinity, "retry");
    this.#queue.reschedule(item, Infinity);
    if (active.deleted !== undefined) this.#queue.add(key, DELETED);
    else if (this.#deps.primaries.has(key)) this.#queue.add(key, ADDED);
  }

  #end(item: Item<P>): void {
    const active = item.value;
    if (active?.state === FRESH && !active.deleted) item.value = undefined;
    this.#queue.done(item);
    this.#deps.cap?.release();
    this.#checkWaiters();
    if (this.#queue.waiting > 0) this.#pump();
  }

  #checkWaiters(): void {
    for (const waiter of this.#waiters) {
      if (waiter()) this.#waiters.delete(waiter);
    }
  }

  // Control and inspection.

  /** Number of objects that wait for a run. */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /** Number of objects whose next run is planned for a later time. */
  get delayed(): number {
    return this.#queue.delayed;
  }

  /** Run of an object that is in progress; undefined if none exists. */
  runOf(key: string): Run<P> | undefined {
    return this.#queue.valueOf(key)?.run;
  }

  /** Runs in progress. */
  get runs(): readonly Run<P>[] {
    if (this.#queue.running === 0) return [];
    return [...this.#queue.values()].flatMap(([, { run }]) => run ?? []);
  }

  /** Number of runs in progress. */
  get running(): number {
    return this.#queue.running;
  }

  /** Number of failing objects, and the time since the oldest failure in ms. */
  get failures(): {
    readonly failing: number;
    readonly exhausted: number;
    readonly oldest: number;
  } {
    let failing = 0;
    let exhausted = 0;
    let since = Infinity;
    for (const [, { state }] of this.#queue.values()) {
      if (state.failures > 0) failing++;
      if (state.exhausted) exhausted++;
      since = Math.min(since, state.failingSince);
    }
    const oldest = failing === 0 ? 0 : this.#deps.clock.now() - since;
    return { failing, exhausted, oldest };
  }

  /**
   * Keys of the objects that have something left to do: they wait, run, fail, or
   * have asked for a later run.
   */
  *busyKeys(): Generator<string, void, undefined> {
    yield* this.#queue.busyKeys();
    for (const [key, { state }] of this.#queue.values()) {
      if (state.failures > 0) yield key;
    }
  }

  /** State of an object between its runs. */
  stateOf(key: string): RunState {
    return this.#queue.valueOf(key)?.state ?? FRESH;
  }

  /**
   * Removes all state of an object, and aborts its run.
   *
   * @param place Place of the object in the cache; -1 if nothing is kept there.
   */
  forget(key: string, cause: AbortCause = "deletion", place = -1): void {
    const active = this.#queue.valueOf(key);
    active?.run?.abort(cause);
    active?.reset();
    this.#pausedDeletions.delete(key);
    this.#queue.remove(key, place);
    this.#checkWaiters();
  }

  /**
   * Removes the state of all objects that this replica no longer owns.
   *
   * @returns Fulfilled when no such object runs.
   */
  async releaseShard(): Promise<void> {
    const { primaries } = this.#deps;
    for (const key of primaries.keys()) {
      if (!this.#owns(key)) this.forget(key, "shard", primaries.placeOf(key));
    }
    for (const [key] of this.#queue.values()) {
      if (!this.#owns(key)) this.forget(key, "shard");
    }
    await this.#until(() => this.runs.every(({ key }) => this.#owns(key)));
  }

  /** Starts waiting runs; after a pause every primary runs again. */
  resume(): void {
    if (this.#hasResumed) this.resync();
    this.#hasResumed = true;
    this.#paused = false;
    this.#pausedDeletions.clear();
    this.#pump();
    this.#checkWaiters();
  }

  /** Prevents further runs. */
  pause(): void {
    this.#paused = true;
    this.#throttle?.cancel();
    this.#throttle = undefined;
    this.#deps.cap?.forget(this.#pump);
  }

  /** Aborts all runs. */
  abortAll(cause: AbortCause): void {
    for (const run of this.runs) run.abort(cause);
  }

  /** Waits until each primary has had a run since the start. */
  async whenAllRan(firstRuns: FirstRuns<P>): Promise<void> {
    const { primaries, settings } = this.#deps;
    await this.#until(() => this.#hasResumed);
    const left = firstRuns.missing(primaries.keys())
      .filter((key) => this.#owns(key));
    if (!settings.runsAtStart) left.forEach((key) => this.request(key));
    await this.#until(() =>
      firstRuns.missing(left).every((key) =>
        !this.#isKnown(key) || this.stateOf(key).leaving
      )
    );
  }

  /** Waits until no run is in progress. */
  whenIdle(): Promise<void> {
    return this.#until(() => this.running === 0);
  }

  /** Removes all state; a run that does not end keeps its key occupied. */
  clear(): void {
    this.#queue.clear();
    for (const [, active] of this.#queue.values()) active.reset();
    this.#pausedDeletions.clear();
  }

  #until(isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const waiter = () => {
        if (!isOver()) return false;
        resolve();
        return true;
      };
      if (!waiter()) this.#waiters.add(waiter);
    });
  }

  readonly #onObserverFault = (error: unknown): void =>
    this.#onFault("observe a run", error);

  readonly #onFault = (what: string, error: unknown): void =>
    this.#log.error(`Cannot ${what}`, { error });
}

/** Whether a run has a state of its object that no run has read yet. */
function isNewState({ type }: RunCause): boolean {
  return type === "initial" || type === "added" || type === "modified";
}
