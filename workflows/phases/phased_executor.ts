import { immediate } from "../../core/callback.ts";
import { milliseconds } from "../../core/api/duration.ts";
import type { Clock } from "../../core/clock.ts";
import { diffText, type SpecDiff } from "./change_map.ts";
import type {
  PhasedDefinition,
  PhasedRun,
  RunningState,
} from "./phased_definition.ts";
import {
  type ChosenSpec,
  INVALID_SPEC,
  lifecycleOf,
  type PendingReason,
  type PhasedObject,
  type PhasedStatus,
  readyCondition,
  type RolloutError,
  RolloutLog,
  type RolloutStatus,
  sameChoice,
} from "./phased_status.ts";

/** Time of the next run: immediately, soon, at the interval, or on an event. */
export type NextRun = "requeue" | "poll" | "interval" | "event";

export interface PhasedExecutorDeps<P extends PhasedObject> {
  /** The object, whose status is changed, and the context of the run. */
  readonly run: PhasedRun<P>;
  /** Writes the status, with the reason why the object is not Ready yet. */
  readonly flush: (pending?: PendingReason) => Promise<void>;
  readonly version: string;
  /** Write-ahead log as it was read back, and its damaged fields. */
  readonly stored: {
    readonly log: Partial<RolloutStatus>;
    readonly damaged: string[];
  };
}

/**
 * Execution of one run of a phased reconciler for one object.
 *
 * The order is the contract: observe, validate, write, decide, suspend, record
 * the deployment, write, deploy, write. A crash at any point loses nothing:
 *
 * 1. The observed state is written before any action could destroy it.
 * 2. A deployment is recorded, with the id of its attempt, before it is made.
 * 3. Whether that attempt was deployed is checked before any other action.
 * 4. An invalid spec never stops the repair of the running deployment.
 */
export class PhasedExecutor<P extends PhasedObject, Observed> {
  readonly #definition: PhasedDefinition<P, Observed>;
  readonly #run: PhasedRun<P>;
  readonly #write: PhasedExecutorDeps<P>["flush"];
  readonly #clock: Clock;
  readonly #log: RolloutLog<P["spec"]>;
  /** Desired spec: the object's own, or the last valid one. */
  #desired: ChosenSpec<P["spec"]>;
  /** Error of an invalid spec; undefined if the spec is valid. */
  #invalid: RolloutError | undefined;
  #failure: RolloutError | undefined;
  /** Observed deployment; undefined if nothing is running. */
  #running: RunningState<P, Observed> | undefined;
  #stable: boolean | string = false;
  /** Reason for not being Ready that was last written. */
  #pending: PendingReason | undefined;
  /** Names of the fields of the write-ahead log that cannot be read. */
  readonly #damaged: readonly string[];

  constructor(
    definition: PhasedDefinition<P, Observed>,
    { run, flush, version, stored }: PhasedExecutorDeps<P>,
  ) {
    this.#definition = definition;
    this.#run = run;
    this.#write = flush;
    this.#clock = definition.clock ?? run.ctx.clock;
    const { object } = run;
    const status = object.status ??= {};
    const { log, damaged } = stored;
    const { phase, running, target } = log;
    if (
      (phase === "Deployed" || phase === "RolledBack") && running === false &&
      target !== undefined &&
      !immediate(definition.suspended?.(target.spec), "suspended()")
    ) {
      // Only a spec that asks for nothing to run is in effect without a deployment.
      delete log.running;
      damaged.push("running");
    }
    this.#damaged = damaged;
    // A log without a phase is repaired before it is used.
    const rollout = status.rollout = log as RolloutStatus<P["spec"]>;
    this.#log = new RolloutLog(rollout, {
      version,
      convert: definition.convert,
    });
    this.#desired = {
      spec: object.spec,
      generation: object.metadata.generation ?? 0,
      version,
    };
  }

  /** Executes the run; an earlier error is cleared at its end. */
  async execute(): Promise<NextRun> {
    const next = await this.#execute();
    const error = this.#invalid ?? this.#failure;
    if (this.#status.error !== undefined && error === undefined) {
      delete this.#status.error;
      await this.#flush(this.#pending);
    }
    return next;
  }

  /** Observes the running deployment, for a cleanup. */
  async observe(): Promise<Observed | undefined> {
    await this.#observe();
    return this.#running?.observed;
  }

  async #execute(): Promise<NextRun> {
    await this.#observe();
    this.#validate();
    const { target } = this.#log.status;
    const diff = target && this.#diff(target.spec);
    const changed = diff !== undefined && diff.change !== "none";
    if (changed && !isReported(this.#run.object)) {
      this.#run.events.normal("SpecChanged", diffText(diff));
    }
    this.#reportError(this.#invalid ?? this.#failure);
    if (this.#damaged.length > 0) return await this.#endRepair();
    const { isChanging } = this.#log;
    const isFailed = !changed &&
      await isRollbackDue(
        this.#definition,
        this.#run,
        this.#clock.wallTime(),
      );
    await this.#flush(
      changed || isChanging
        ? pendingChange(this.#run.object, isChanging ? undefined : diff)
        : (isFailed || target === undefined) && this.#deferral() ||
          this.#unstableReason(),
    );
    if (target === undefined) {
      return this.#invalid === undefined ? await this.#deployFirst() : "event";
    }
    if ((changed || isChanging) && await this.#isDeferred()) return "poll";
    const next = await this.#change(target, diff!, isFailed);
    if (next !== undefined) return next;
    const { running, healthy } = this.#log.status;
    if (!running) return "interval";
    return await this.#recoverOrOther() ?? (healthy ? "interval" : "poll");
  }

  async #observe(): Promise<void> {
    if (this.#damaged.length > 0) await this.#repair();
    const attempt = this.#log.inFlight;
    if (attempt !== undefined) {
      if (await this.#definition.isDeployed(this.#run, attempt)) {
        this.#log.markDeployed();
      } else this.#log.markNotDeployed(this.#desired);
    }
    const { deployed, status } = this.#log;
    if (!status.running || deployed === undefined) return;
    const observed = await this.#definition.observe(this.#run, deployed.spec);
    this.#running = { observed, deployed: deployed.spec };
    this.#stable = immediate(this.#definition.stable(observed), "stable()");
    const failed = this.#definition.failed?.(observed);
    const failure = immediate(failed, "failed()");
    if (failure !== undefined) this.#failure = { ...failure, stalled: true };
    this.#log.recordObservation(this.#stable === true && failure === undefined);
  }

  /**
   * Rebuilds a damaged write-ahead log from its readable fields and what is
   * deployed. A deployment whose spec is not known is suspended, so that its
   * state is not lost, and replaced.
   */
  async #repair(): Promise<void> {
    const log: Partial<RolloutStatus<P["spec"]>> = this.#log.status;
    const now = this.#clock.wallTime();
    // Above every revision that another replica may remember.
    if (this.#damaged.includes("revision")) log.revision = now;
    if (this.#damaged.includes("since")) log.since = now;
    const decisive = ["phase", "running", "target", "stable", "attempt"];
    const { phase, target, stable, attempt } = log;
    const isSettled = target !== undefined && log.running !== undefined &&
      (phase === "Deployed" || phase === "RolledBack" && stable !== undefined);
    if (isSettled || !decisive.some((name) => this.#damaged.includes(name))) {
      return;
    }
    // What was deployed is suspended again, in case it was not recorded.
    log.running ??= phase === "Deployed" || phase === "RolledBack";
    log.running ||= await this.#isDeployed(attempt, target ?? this.#desired);
    const deployed = [target, stable].find((choice) =>
      choice?.generation === Number.parseInt(attempt ?? "")
    );
    if (!log.running || deployed === undefined || this.#isSuspendedSpec()) {
      log.phase = "Upgrading";
      if (!log.running) log.attempt ??= target && `${target.generation}.0`;
      else if (target === undefined && this.#issueOf(undefined) === undefined) {
        log.target = this.#desired;
      }
      return;
    }
    log.target ??= deployed;
    log.phase = sameChoice(log.target, deployed) ? "Deployed" : "RolledBack";
  }

  /** Whether an attempt was deployed; without an id, whether any is stable. */
  async #isDeployed(
    attempt: string | undefined,
    { spec }: ChosenSpec<P["spec"]>,
  ): Promise<boolean> {
    if (attempt !== undefined) {
      return await this.#definition.isDeployed(this.#run, attempt);
    }
    const observed = await this.#definition.observe(this.#run, spec);
    return immediate(this.#definition.stable(observed), "stable()") === true;
  }

  /** Writes the repaired write-ahead log, with which the next run continues. */
  async #endRepair(): Promise<NextRun> {
    const message = `status.rollout was damaged: ${
      this.#damaged.join(", ")
    } could not be read: it was rebuilt from the deployment`;
    this.#run.events.warning("StatusInvalid", message);
    await this.#flush({ reason: "StatusInvalid", message });
    // Without a valid spec nothing can replace the unknown deployment.
    const { running, target } = this.#log.status;
    return running && target === undefined ? "event" : "requeue";
  }

  /** Problem of the object's spec; undefined if it is valid. */
  #issueOf(last: ChosenSpec<P["spec"]> | undefined): string | undefined {
    const { spec } = this.#run.object;
    const issue = this.#definition.validate?.(this.#run, spec, last?.spec);
    return immediate(issue, "validate()");
  }

  /** Validates the spec; the last valid one stays in effect. */
  #validate(): void {
    const { target } = this.#log.status;
    const issue = this.#issueOf(target);
    if (issue === undefined) return;
    this.#invalid = { reason: INVALID_SPEC, message: issue, stalled: true };
    if (target !== undefined) this.#desired = target;
  }

  /** Sets the error of the status, with one event when it changes. */
  #reportError(problem: RolloutError | undefined): void {
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

  async #deployFirst(): Promise<NextRun> {
    if (this.#isSuspendedSpec()) return "interval";
    if (await this.#isDeferred()) return "poll";
    return await this.#deploy({ ...this.#desired, first: true });
  }

  /** Performs the change that is needed; undefined if no change is needed. */
  async #change(
    target: ChosenSpec<P["spec"]>,
    diff: SpecDiff,
    isFailed: boolean,
  ): Promise<NextRun | undefined> {
    const { status } = this.#log;
    const changed = diff.change !== "none";
    if (status.phase === "RollingBack") {
      if (!changed) return await this.#upgrade(status.stable!);
      status.phase = "Upgrading";
    }
    if (!changed && status.phase !== "Upgrading") {
      if (!isFailed) return undefined;
      return await this.#isDeferred() ? "poll" : await this.#rollBack(target);
    }
    if (status.phase === "RolledBack" && this.#isStableSpec()) {
      // The desired spec is the one that was rolled back to.
      this.#log.markInForce(this.#desired);
      await this.#flush(this.#unstableReason());
      return "poll";
    }
    if (diff.change === "scale" && await this.#scale()) return "poll";
    return await this.#upgrade(this.#desired, {
      discard: diff.change === "redeploy",
    });
  }

  async #scale(): Promise<boolean> {
    const { status } = this.#log;
    const { scale } = this.#definition;
    if (status.phase !== "Deployed" || !status.running || !scale) return false;
    const scaled = await scale(this.#run, this.#desired.spec) ?? true;
    if (!scaled) return false;
    status.target = this.#desired;
    status.since = this.#clock.wallTime();
    await this.#flush(this.#unstableReason());
    return true;
  }

  /** Suspends the running deployment and deploys the chosen spec. */
  async #upgrade(
    chosen: ChosenSpec<P["spec"]>,
    { discard = false }: { readonly discard?: boolean } = {},
  ): Promise<NextRun> {
    const { status } = this.#log;
    if (status.running) {
      const next = await this.#suspend(chosen, discard);
      if (next !== undefined) return next;
    } else if (this.#isSuspendedSpec() && status.phase !== "RollingBack") {
      return await this.#recordSuspended();
    } else if (discard) delete status.savepoint;
    return await this.#deploy(chosen);
  }

  /** Suspends the deployment; undefined if the next one follows in this run. */
  async #suspend(
    next: ChosenSpec<P["spec"]>,
    discard: boolean,
  ): Promise<NextRun | undefined> {
    const { suspend } = this.#definition;
    const suspension = await suspend?.(this.#run, {
      ...this.#running!,
      next: next.spec,
      discard,
    }) ?? { state: "done" };
    if (suspension.state === "blocked") {
      const message = suspension.reason;
      const next = await this.#recoverOrOther();
      if (next === undefined) {
        await this.#flush({ reason: "UpgradeBlocked", message });
      }
      return "poll";
    }
    this.#log.markSuspending();
    if (suspension.state === "pending") {
      await this.#flush({ message: suspension.reason });
      return "poll";
    }
    if (suspend !== undefined) {
      this.#run.events.normal("Suspended", "Suspended the deployment");
    }
    this.#log.markSuspended(discard ? undefined : suspension.savepoint);
    if (this.#isSuspendedSpec() && this.#log.status.phase !== "RollingBack") {
      return await this.#recordSuspended();
    }
    if (!suspension.again || discard) return undefined;
    await this.#recordDeployment(next);
    return "requeue";
  }

  async #recordSuspended(): Promise<NextRun> {
    this.#log.markInForce(this.#desired);
    this.#clearFailure();
    await this.#flush();
    return "interval";
  }

  /** Records the next deployment, with the id of its attempt. */
  async #recordDeployment(
    choice: ChosenSpec<P["spec"]>,
    pending?: PendingReason,
  ): Promise<void> {
    if (!this.#log.recordDeployment(choice, this.#clock.wallTime())) return;
    this.#clearFailure();
    await this.#flush(pending);
  }

  async #deploy(
    choice: ChosenSpec<P["spec"]>,
    pending?: PendingReason,
  ): Promise<NextRun> {
    await this.#recordDeployment(choice, pending);
    const { attempt = "", savepoint } = this.#log.status;
    const { spec } = choice;
    this.#run.events.normal("Submit", `Deploying attempt ${attempt}`);
    await this.#definition.deploy(this.#run, { spec, attempt, savepoint });
    this.#log.markDeployed();
    await this.#flush();
    return "poll";
  }

  async #rollBack(target: ChosenSpec<P["spec"]>): Promise<NextRun> {
    const { status } = this.#log;
    const stable = status.stable!;
    status.phase = "RollingBack";
    const message =
      `Generation ${target.generation} did not become stable: going back to generation ${stable.generation}`;
    this.#run.events.normal("Rollback", message);
    await this.#flush({ message });
    return await this.#upgrade(stable);
  }

  async #recoverOrOther(): Promise<NextRun | undefined> {
    const { deployed } = this.#log;
    const state = this.#running;
    if (state === undefined || deployed === undefined) return undefined;
    const recovery = await this.#definition.recover?.(this.#run, state);
    if (recovery !== undefined) {
      const { reason, message, savepoint } = recovery;
      this.#run.events.warning(reason, message);
      this.#log.markRecovering(savepoint);
      return await this.#deploy(deployed, { reason, message });
    }
    const acted = await this.#definition.reconcileOtherChanges?.(
      this.#run,
      state,
    );
    return acted ? "poll" : undefined;
  }

  /** Whether the change is deferred; the reason is written. */
  async #isDeferred(): Promise<boolean> {
    const observed = this.#running?.observed;
    const message = immediate(
      this.#definition.deferChange?.(this.#run, observed),
      "deferChange()",
    );
    if (message === undefined) return false;
    await this.#flush({ reason: BUSY, message });
    return true;
  }

  /** Reason of an earlier run that has deferred its change; undefined if none. */
  #deferral(): PendingReason | undefined {
    const pending = pendingChange(this.#run.object, undefined);
    return pending?.reason === BUSY ? pending : undefined;
  }

  async #flush(pending?: PendingReason): Promise<void> {
    this.#pending = pending;
    await this.#write(pending);
  }

  /** Clears the error of the last attempt when a new one begins. */
  #clearFailure(): void {
    if (this.#invalid === undefined) delete this.#status.error;
  }

  /** Reason why the deployment is not stable. */
  #unstableReason(): PendingReason | undefined {
    return typeof this.#stable === "string"
      ? { message: this.#stable }
      : undefined;
  }

  get #status(): PhasedStatus {
    return this.#run.object.status!;
  }

  #isSuspendedSpec(): boolean {
    const { suspended } = this.#definition;
    return immediate(suspended?.(this.#desired.spec), "suspended()") ?? false;
  }

  #isStableSpec(): boolean {
    const { stable } = this.#log.status;
    return stable !== undefined &&
      this.#diff(stable.spec).change === "none";
  }

  /** Changes from a spec to the desired one. */
  #diff(before: P["spec"]): SpecDiff {
    const diff = this.#definition.diff(before, this.#desired.spec);
    return immediate(diff, "diff()");
  }
}

/** Reason for not being Ready while a change is deferred. */
const BUSY = "Busy";

/** Whether an earlier run has reported the current generation of an object. */
function isReported({ metadata, status }: PhasedObject): boolean {
  const ready = readyCondition(status?.conditions);
  return ready?.observedGeneration === metadata.generation;
}

/**
 * Computes the reason to report at the start of a run, before its outcome is
 * known. While a change is in progress, the reason of the last run stays, so
 * that conditions do not flicker.
 */
function pendingChange(
  object: PhasedObject,
  change: SpecDiff | undefined,
): PendingReason | undefined {
  const { lifecycle, conditions } = object.status ?? {};
  if (isReported(object) && lifecycle === lifecycleOf(object)) {
    const { status, reason, message = "" } = readyCondition(conditions) ?? {};
    if (status === "False") return { reason, message };
  }
  return change && { reason: "SpecChanged", message: diffText(change) };
}

/**
 * Whether the deployment has not become stable in time, and the last stable spec
 * can be deployed again without losing state.
 */
async function isRollbackDue<P extends PhasedObject>(
  { rollback, suspended }: Pick<
    PhasedDefinition<P, never>,
    "rollback" | "suspended"
  >,
  run: PhasedRun<P>,
  now: number,
): Promise<boolean> {
  // Decided by the current spec, not by the deployed one.
  const options = typeof rollback === "function"
    ? immediate(rollback(run.object.spec), "rollback()")
    : rollback;
  const { phase, target, stable, since = 0, running } = run.object.status!
    .rollout as RolloutStatus<P["spec"]>;
  if (
    options === undefined || phase !== "Deployed" || !running ||
    target === undefined || stable === undefined ||
    sameChoice(stable, target) ||
    immediate(suspended?.(stable.spec), "suspended()")
  ) return false;
  const { after = "5m", accepts, safe } = options;
  return now - since > milliseconds(after, "rollback.after") &&
    (immediate(accepts?.(stable.spec, target.spec), "rollback.accepts()") ??
      true) &&
    (await safe?.(run) ?? true);
}
