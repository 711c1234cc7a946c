import { type Clock, systemClock } from "../../core/clock.ts";
import { Stalled } from "../conditions/outcome.ts";
import { diffText, type SpecDiff } from "./change_map.ts";
import { type Pending, readyCondition } from "./lifecycle_conditions.ts";
import type {
  PhasedDefinition,
  PhasedRun,
  RunningState,
  SpecOf,
} from "./phased_definition.ts";
import {
  type ChosenSpec,
  INVALID_SPEC,
  lifecycleOf,
  type PhasedObject,
  type PhasedStatus,
  type RolloutError,
  rolloutIssue,
  type RolloutStatus,
  sameChoice,
} from "./phased_status.ts";
import { RolloutLog } from "./rollout_log.ts";
import { milliseconds } from "../../core/api/duration.ts";

/** When to look again: at once, soon, after the interval, or on an event. */
export type PassEnding = "requeue" | "poll" | "interval" | "event";

/** Writes the status before the pass goes on, and says what is still pending. */
export type Flush = (pending?: Pending) => Promise<void>;

/** What a pass works with. */
export interface PhasedPassOptions<P extends PhasedObject> {
  /** The object, whose status is changed, and the context. */
  readonly run: PhasedRun<P>;
  /** Writes the status. */
  readonly flush: Flush;
  /** The version of the kind, for the specs that are stored. */
  readonly version: string;
}

/**
 * One pass of a phased reconciler over one object.
 *
 * The order is the contract: observe, validate, flush, decide, suspend, promise,
 * flush, deploy, flush. Nothing is done that a crash right after it could lose:
 *
 * 1. What was observed is written before anything could destroy it.
 * 2. What is about to be deployed is written, with a stamp, before it is.
 * 3. Whether that very attempt took place is asked before anything else is done.
 * 4. An invalid spec never stops the repair of what runs.
 */
export class PhasedPass<P extends PhasedObject, Seen> {
  readonly #definition: PhasedDefinition<P, Seen>;
  readonly #run: PhasedRun<P>;
  readonly #write: Flush;
  readonly #clock: Clock;
  readonly #log: RolloutLog<SpecOf<P>>;
  /** What is asked for: the object's own spec, unless it is invalid. */
  #asked: ChosenSpec<SpecOf<P>>;
  /** What an invalid spec, or what runs and has failed, makes of the status. */
  #invalid: RolloutError | undefined;
  #failure: RolloutError | undefined;
  /** What runs, if anything does; it need not be anything that was found. */
  #running: RunningState<P, Seen> | undefined;
  #stable: boolean | string = false;
  /** What was last said to be pending. */
  #pending: Pending | undefined;

  /**
   * Prepares a pass.
   *
   * @param definition What is known of the subject.
   * @param options The object and how to write its status.
   * @throws {Stalled} If the log in the status cannot be understood.
   */
  constructor(
    definition: PhasedDefinition<P, Seen>,
    options: PhasedPassOptions<P>,
  ) {
    const { run, flush, version } = options;
    this.#definition = definition;
    this.#run = run;
    this.#write = flush;
    this.#clock = definition.clock ?? systemClock;
    const { object } = run;
    const status = object.status ??= {};
    const rollout = status.rollout ??= { phase: "Upgrading", running: false };
    const issue = rolloutIssue(rollout);
    if (issue !== undefined) {
      throw new Stalled(
        "StatusInvalid",
        `status.rollout cannot be understood: ${issue}`,
      );
    }
    this.#log = new RolloutLog(rollout as RolloutStatus<SpecOf<P>>, {
      version,
      convert: definition.convert,
    });
    this.#asked = {
      spec: object.spec,
      generation: object.metadata.generation ?? 0,
      version,
    };
  }

  /** Goes through the pass; what went wrong before is forgotten at its end. */
  async execute(): Promise<PassEnding> {
    const ending = await this.#goThrough();
    const error = this.#invalid ?? this.#failure;
    if (this.#status.error !== undefined && error === undefined) {
      delete this.#status.error;
      await this.#flush(this.#pending);
    }
    return ending;
  }

  /** Looks at what runs, for a deletion that is about to undo it. */
  async look(): Promise<Seen | undefined> {
    await this.#observe();
    return this.#running?.seen;
  }

  async #goThrough(): Promise<PassEnding> {
    await this.#observe();
    this.#validate();
    const { target } = this.#log.status;
    const diff = target && this.#definition.diff(target.spec, this.#asked.spec);
    const changed = diff !== undefined && diff.change !== "none";
    if (changed && !isSeenBefore(this.#run.object)) {
      this.#run.events.normal("SpecChanged", diffText(diff));
    }
    this.#tell(this.#invalid ?? this.#failure);
    const { isChanging } = this.#log;
    await this.#flush(
      changed || isChanging
        ? pendingChange(this.#run.object, isChanging ? undefined : diff)
        : this.#unstable(),
    );
    if (target === undefined) {
      return this.#invalid === undefined ? await this.#deployFirst() : "event";
    }
    if ((changed || isChanging) && await this.#isBusy()) return "poll";
    return await this.#change(target, diff!) ?? await this.#steady();
  }

  async #observe(): Promise<void> {
    const attempt = this.#log.inFlight;
    if (attempt !== undefined) {
      if (await this.#definition.landed(this.#run, attempt)) this.#log.landed();
      else this.#log.missed(this.#asked);
    }
    const { deployed, status } = this.#log;
    if (!status.running || deployed === undefined) return;
    const seen = await this.#definition.observe(this.#run, deployed.spec);
    this.#running = { seen, deployed: deployed.spec };
    this.#stable = this.#definition.stable(seen);
    const failure = this.#definition.failed?.(seen);
    if (failure !== undefined) this.#failure = { ...failure, stalled: true };
    this.#log.observed(this.#stable === true && failure === undefined);
  }

  /** Goes on with the last valid spec where the present one is not. */
  #validate(): void {
    const { target } = this.#log.status;
    const issue = this.#definition.validate?.(
      this.#run,
      this.#run.object.spec,
      target?.spec,
    );
    if (issue === undefined) return;
    this.#invalid = { reason: INVALID_SPEC, message: issue, stalled: true };
    if (target !== undefined) this.#asked = target;
  }

  /** Makes a problem the error of the status, with one event. */
  #tell(problem: RolloutError | undefined): void {
    const { error } = this.#status;
    if (problem === undefined) {
      if (error?.reason === INVALID_SPEC) delete this.#status.error;
      return;
    }
    const { reason, message } = problem;
    if (error?.reason !== reason || error.message !== message) {
      this.#run.events.warning(reason, message);
    }
    this.#status.error = problem;
  }

  async #deployFirst(): Promise<PassEnding> {
    if (this.#isParked()) return "interval";
    if (await this.#isBusy()) return "poll";
    return await this.#deploy({ ...this.#asked, first: true });
  }

  /** What is to be changed, or undefined if nothing is. */
  async #change(
    target: ChosenSpec<SpecOf<P>>,
    diff: SpecDiff,
  ): Promise<PassEnding | undefined> {
    const { status } = this.#log;
    const changed = diff.change !== "none";
    if (status.phase === "RollingBack") {
      if (!changed) return await this.#upgrade(status.stable!);
      status.phase = "Upgrading";
    }
    if (!changed && status.phase !== "Upgrading") {
      const now = this.#clock.wallTime();
      const state = { run: this.#run, rollout: status, now };
      if (!await isRollbackDue(this.#definition, state)) return undefined;
      return await this.#isBusy() ? "poll" : await this.#rollBack(target);
    }
    if (status.phase === "RolledBack" && this.#isStableSpec()) {
      // What is asked for again is what runs already.
      this.#log.inForce(this.#asked);
      await this.#flush(this.#unstable());
      return "poll";
    }
    if (diff.change === "scale" && await this.#scale()) return "poll";
    return await this.#upgrade(this.#asked, {
      discard: diff.change === "redeploy",
    });
  }

  async #scale(): Promise<boolean> {
    const { status } = this.#log;
    const { scale } = this.#definition;
    if (status.phase !== "Deployed" || !status.running || !scale) return false;
    const scaled = await scale(this.#run, this.#asked.spec) ?? true;
    if (!scaled) return false;
    status.target = this.#asked;
    status.since = this.#clock.wallTime();
    await this.#flush(this.#unstable());
    return true;
  }

  /** Suspends what runs and deploys what was chosen. */
  async #upgrade(
    chosen: ChosenSpec<SpecOf<P>>,
    { discard = false }: { readonly discard?: boolean } = {},
  ): Promise<PassEnding> {
    const { status } = this.#log;
    if (status.running) {
      const ending = await this.#suspend(chosen, discard);
      if (ending !== undefined) return ending;
    } else if (this.#isParked() && status.phase !== "RollingBack") {
      return await this.#park();
    } else if (discard) delete status.carry;
    return await this.#deploy(chosen);
  }

  /** Stops what runs; undefined if the deployment can follow in this pass. */
  async #suspend(
    next: ChosenSpec<SpecOf<P>>,
    discard: boolean,
  ): Promise<PassEnding | undefined> {
    const { suspend } = this.#definition;
    const suspension = await suspend?.(this.#run, {
      ...this.#running!,
      next: next.spec,
      discard,
    }) ?? { state: "done" };
    if (suspension.state === "blocked") {
      const message = suspension.reason;
      const ending = await this.#tend();
      if (ending === undefined) {
        await this.#flush({ reason: "UpgradeBlocked", message });
      }
      return "poll";
    }
    this.#log.suspending();
    if (suspension.state === "pending") {
      await this.#flush({ message: suspension.reason });
      return "poll";
    }
    if (suspend !== undefined) {
      this.#run.events.normal("Suspended", "Suspended what was running");
    }
    this.#log.suspended(discard ? undefined : suspension.carry);
    if (this.#isParked() && this.#log.status.phase !== "RollingBack") {
      return await this.#park();
    }
    if (!suspension.again || discard) return undefined;
    await this.#promise(next);
    return "requeue";
  }

  async #park(): Promise<PassEnding> {
    this.#log.inForce(this.#asked);
    this.#forgiven();
    await this.#flush();
    return "interval";
  }

  /** Writes down what is about to be deployed, under a stamp of its own. */
  async #promise(
    choice: ChosenSpec<SpecOf<P>>,
    pending?: Pending,
  ): Promise<void> {
    if (!this.#log.promise(choice, this.#clock.wallTime())) return;
    this.#forgiven();
    await this.#flush(pending);
  }

  async #deploy(
    choice: ChosenSpec<SpecOf<P>>,
    pending?: Pending,
  ): Promise<PassEnding> {
    await this.#promise(choice, pending);
    const { attempt, carry } = this.#log.status;
    this.#run.events.normal("Submit", `Deploying attempt ${attempt}`);
    await this.#definition.deploy(this.#run, {
      spec: choice.spec,
      attempt: attempt!,
      carry,
    });
    this.#log.landed();
    await this.#flush();
    return "poll";
  }

  async #rollBack(target: ChosenSpec<SpecOf<P>>): Promise<PassEnding> {
    const { status } = this.#log;
    const stable = status.stable!;
    status.phase = "RollingBack";
    const message =
      `Generation ${target.generation} did not become stable: going back to generation ${stable.generation}`;
    this.#run.events.normal("Rollback", message);
    await this.#flush({ message });
    return await this.#upgrade(stable);
  }

  /** Looks after what runs while nothing is to be changed. */
  async #steady(): Promise<PassEnding> {
    if (!this.#log.status.running) return "interval";
    return await this.#tend() ??
      (this.#log.status.healthy ? "interval" : "poll");
  }

  /** Recovers what was lost, or else does what is due. */
  async #tend(): Promise<PassEnding | undefined> {
    const { deployed } = this.#log;
    const state = this.#running;
    if (state === undefined || deployed === undefined) return undefined;
    const recovery = await this.#definition.recover?.(this.#run, state);
    if (recovery !== undefined) {
      const { reason, message, carry } = recovery;
      this.#run.events.warning(reason, message);
      this.#log.recovering(carry);
      return await this.#deploy(deployed, { reason, message });
    }
    const acted = await this.#definition.steady?.(this.#run, state);
    return acted ? "poll" : undefined;
  }

  /** Whether something must not be interrupted; the conditions say what. */
  async #isBusy(): Promise<boolean> {
    const seen = this.#running?.seen;
    const message = this.#definition.busy?.(this.#run, seen);
    if (message === undefined) return false;
    await this.#flush({ reason: "Busy", message });
    return true;
  }

  async #flush(pending?: Pending): Promise<void> {
    this.#pending = pending;
    await this.#write(pending);
  }

  /** A new attempt begins: what went wrong with the last one is forgotten. */
  #forgiven(): void {
    this.#failure = undefined;
    if (this.#invalid === undefined) delete this.#status.error;
    else this.#status.error = this.#invalid;
  }

  /** Why what runs is not stable yet. */
  #unstable(): Pending | undefined {
    const { running, healthy } = this.#log.status;
    return running && !healthy && typeof this.#stable === "string"
      ? { message: this.#stable }
      : undefined;
  }

  get #status(): PhasedStatus {
    return this.#run.object.status!;
  }

  #isParked(): boolean {
    return this.#definition.parked?.(this.#asked.spec) ?? false;
  }

  #isStableSpec(): boolean {
    const { stable } = this.#log.status;
    return stable !== undefined &&
      this.#definition.diff(stable.spec, this.#asked.spec).change === "none";
  }
}

/** Whether an earlier pass has told of the present generation of an object. */
export function isSeenBefore({ metadata, status }: PhasedObject): boolean {
  const ready = readyCondition(status?.conditions);
  return ready?.observedGeneration === metadata.generation;
}

/**
 * What is to be said of a change while a pass begins, before it is known how far
 * the pass gets. As long as the change goes on as before, the words of the last
 * pass stay: conditions must not flicker.
 *
 * @param object The object with its status.
 * @param change The change that is asked for, if it has not begun yet.
 */
export function pendingChange(
  object: PhasedObject,
  change: SpecDiff | undefined,
): Pending | undefined {
  const { lifecycle, conditions } = object.status ?? {};
  if (isSeenBefore(object) && lifecycle === lifecycleOf(object)) {
    const { status, reason, message = "" } = readyCondition(conditions) ?? {};
    if (status === "False") return { reason, message };
  }
  return change && { reason: "SpecChanged", message: diffText(change) };
}

/**
 * Whether what runs has failed to become stable in time, and the last stable spec
 * can be restored without loss.
 *
 * @param definition What is known of the subject.
 * @param state The run, where the rollout is, and the present.
 */
export async function isRollbackDue<P extends PhasedObject>(
  definition: Pick<PhasedDefinition<P, never>, "rollback" | "parked">,
  { run, rollout, now }: {
    readonly run: PhasedRun<P>;
    readonly rollout: RolloutStatus<SpecOf<P>>;
    readonly now: number;
  },
): Promise<boolean> {
  const { rollback, parked } = definition;
  // The switches are those of the present spec, not of what was deployed.
  const options = typeof rollback === "function"
    ? rollback(run.object.spec)
    : rollback;
  const { phase, target, stable, since = 0, running } = rollout;
  if (
    options === undefined || phase !== "Deployed" || !running ||
    target === undefined || stable === undefined ||
    sameChoice(stable, target) || parked?.(stable.spec)
  ) return false;
  const { after = "5m", accepts, safe } = options;
  return now - since > milliseconds(after, "rollback.after") &&
    (accepts?.(stable.spec, target.spec) ?? true) &&
    (await safe?.(run) ?? true);
}
