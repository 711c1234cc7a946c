import { milliseconds } from "../../core/api/duration.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { diffText, type SpecDiff } from "./change_map.ts";
import type {
  PhasedDefinition,
  PhasedRun,
  SpecOf,
} from "./phased_definition.ts";
import {
  type ChosenSpec,
  type PhasedObject,
  type RolloutStatus,
  sameChoice,
} from "./rollout.ts";

/** When to look again: at once, soon, after the interval, or on an event. */
export type PassEnding = "requeue" | "poll" | "interval" | "event";

/** Writes the status before the pass goes on. */
export type Flush = () => Promise<void>;

/** The reason of the error that an invalid spec is. */
const INVALID = "Invalid";

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
  readonly #flush: Flush;
  readonly #clock: Clock;
  readonly #rollout: RolloutStatus<SpecOf<P>>;
  /** What is asked for: the object's own spec, unless it is invalid. */
  #asked: ChosenSpec<SpecOf<P>>;
  #seen: Seen | undefined;

  /**
   * Prepares a pass.
   *
   * @param definition What is known of the subject.
   * @param run The object, whose status is changed, and the context.
   * @param flush Writes the status.
   */
  constructor(
    definition: PhasedDefinition<P, Seen>,
    run: PhasedRun<P>,
    flush: Flush,
  ) {
    this.#definition = definition;
    this.#run = run;
    this.#flush = flush;
    this.#clock = definition.clock ?? systemClock;
    const { object } = run;
    const status = object.status ??= {};
    const rollout = status.rollout ??= { phase: "Upgrading", running: false };
    this.#rollout = rollout as RolloutStatus<SpecOf<P>>;
    this.#asked = {
      spec: object.spec,
      generation: object.metadata.generation ?? 0,
    };
  }

  /** Goes through the pass; what went wrong before is forgotten at its end. */
  async execute(): Promise<PassEnding> {
    const ending = await this.#goThrough();
    const { error } = this.#status;
    if (error !== undefined && error.reason !== INVALID) {
      delete this.#status.error;
      await this.#flush();
    }
    return ending;
  }

  async #goThrough(): Promise<PassEnding> {
    await this.#observe();
    const valid = this.#validate();
    await this.#flush();
    const { target } = this.#rollout;
    if (!valid && target === undefined) return "event";
    const busy = this.#definition.busy?.(this.#run, this.#seen);
    if (busy !== undefined) {
      this.#run.ctx.log.info("Waiting before a change", { reason: busy });
      return "poll";
    }
    if (target === undefined) return await this.#deployFirst();
    const diff = this.#definition.diff(target.spec, this.#asked.spec);
    return await this.#change(target, diff) ?? await this.#steady(valid);
  }

  async #observe(): Promise<void> {
    const rollout = this.#rollout;
    const { phase, attempt } = rollout;
    const inFlight = !rollout.running && attempt !== undefined &&
      (phase === "Upgrading" || phase === "RollingBack");
    if (inFlight) {
      if (await this.#definition.landed(this.#run, attempt)) {
        this.#landed(phase);
      } else if (rollout.target?.first) {
        // Nothing is there: what is asked for now is as good as what was then.
        delete rollout.target;
      }
    }
    const deployed = this.#deployed();
    if (!rollout.running || deployed === undefined) return;
    this.#seen = await this.#definition.observe(this.#run, deployed.spec);
    if (!this.#definition.stable(this.#seen)) return;
    if (rollout.phase === "Deployed") rollout.stable = rollout.target;
  }

  /** Whether the object's own spec can be acted upon. */
  #validate(): boolean {
    const { target } = this.#rollout;
    const issue = this.#definition.validate?.(
      this.#run,
      this.#run.object.spec,
      target?.spec,
    );
    if (issue === undefined) {
      if (this.#status.error?.reason === INVALID) delete this.#status.error;
      return true;
    }
    if (this.#status.error?.message !== issue) {
      this.#run.ctx.events.warning("ValidationError", issue);
    }
    this.#status.error = { reason: INVALID, message: issue };
    if (target !== undefined) this.#asked = target;
    return false;
  }

  async #deployFirst(): Promise<PassEnding> {
    if (this.#isParked()) return "interval";
    this.#promise({ first: true });
    return await this.#deploy(this.#asked.spec);
  }

  /** What is to be changed, or undefined if nothing is. */
  async #change(
    target: ChosenSpec<SpecOf<P>>,
    diff: SpecDiff,
  ): Promise<PassEnding | undefined> {
    const rollout = this.#rollout;
    const changed = diff.change !== "none";
    if (rollout.phase === "RollingBack" && changed) rollout.phase = "Upgrading";
    if (rollout.phase === "RollingBack") {
      return await this.#upgrade(rollout.stable!);
    }
    if (
      rollout.phase === "Deployed" && !changed &&
      await this.#isRollbackDue(target)
    ) return await this.#rollBack();
    if (!changed && rollout.phase !== "Upgrading") return undefined;
    if (rollout.phase === "RolledBack" && this.#isStableSpec()) {
      // What is asked for again is what runs already.
      rollout.phase = "Deployed";
      rollout.target = this.#asked;
      rollout.stable = this.#asked;
      await this.#flush();
      return "poll";
    }
    if (changed && rollout.phase !== "Upgrading") this.#announce(diff);
    if (
      diff.change === "scale" && rollout.phase === "Deployed" &&
      rollout.running && this.#definition.scale !== undefined
    ) {
      await this.#definition.scale(this.#run, this.#asked.spec);
      rollout.target = this.#asked;
      rollout.since = this.#clock.wallTime();
      await this.#flush();
      return "poll";
    }
    return await this.#upgrade(this.#asked);
  }

  /** Suspends what runs and deploys what was chosen. */
  async #upgrade(chosen: ChosenSpec<SpecOf<P>>): Promise<PassEnding> {
    const rollout = this.#rollout;
    if (rollout.running) {
      const ending = await this.#suspend();
      if (ending !== undefined) return ending;
    } else if (this.#isParked() && rollout.phase !== "RollingBack") {
      return await this.#park();
    }
    this.#promise({});
    return await this.#deploy(chosen.spec);
  }

  /** Stops what runs; undefined if the deployment can follow in this pass. */
  async #suspend(): Promise<PassEnding | undefined> {
    const rollout = this.#rollout;
    const suspension = await this.#definition.suspend?.(
      this.#run,
      this.#seen!,
    ) ?? { state: "done" };
    if (suspension.state === "blocked") {
      this.#run.ctx.log.info("Cannot suspend now", suspension);
      await this.#tend();
      await this.#flush();
      return "poll";
    }
    // A rollback that waits for its suspension stays one.
    if (rollout.phase !== "RollingBack") rollout.phase = "Upgrading";
    if (suspension.state === "pending") {
      await this.#flush();
      return "poll";
    }
    this.#run.ctx.events.normal("Suspended", "Suspended what was running");
    rollout.running = false;
    rollout.carry = suspension.carry;
    if (this.#isParked() && rollout.phase !== "RollingBack") {
      return await this.#park();
    }
    if (!suspension.again) return undefined;
    this.#promise({});
    await this.#flush();
    return "requeue";
  }

  async #park(): Promise<PassEnding> {
    const rollout = this.#rollout;
    rollout.phase = "Deployed";
    rollout.target = this.#asked;
    rollout.stable = this.#asked;
    this.#status.observedGeneration = this.#asked.generation;
    await this.#flush();
    return "interval";
  }

  /** Writes down what is about to be deployed, under a stamp of its own. */
  #promise({ first = false }: { readonly first?: boolean }): void {
    const rollout = this.#rollout;
    if (rollout.phase !== "RollingBack") {
      rollout.phase = "Upgrading";
      rollout.target = { ...this.#asked, ...(first && { first }) };
    }
    const counter = Number(rollout.attempt?.split(".")[1] ?? 0) + 1;
    rollout.attempt = `${this.#asked.generation}.${counter}`;
    rollout.running = false;
    rollout.since = this.#clock.wallTime();
    delete this.#status.error;
  }

  async #deploy(spec: SpecOf<P>): Promise<PassEnding> {
    await this.#flush();
    const { attempt, carry, phase } = this.#rollout;
    this.#run.ctx.events.normal("Submit", `Deploying attempt ${attempt}`);
    await this.#definition.deploy(this.#run, {
      spec,
      attempt: attempt!,
      carry,
    });
    this.#landed(phase);
    await this.#flush();
    return "poll";
  }

  #landed(phase: RolloutStatus["phase"]): void {
    const rollout = this.#rollout;
    rollout.phase = phase === "RollingBack" ? "RolledBack" : "Deployed";
    rollout.running = true;
    delete rollout.carry;
    const { target } = rollout;
    if (target === undefined) return;
    rollout.target = { spec: target.spec, generation: target.generation };
    this.#status.observedGeneration = target.generation;
  }

  async #isRollbackDue(target: ChosenSpec<SpecOf<P>>): Promise<boolean> {
    const { rollback } = this.#definition;
    const { stable, since, running } = this.#rollout;
    if (rollback === undefined || stable === undefined || !running) {
      return false;
    }
    if (sameChoice(stable, target) || this.#isParkedSpec(stable.spec)) {
      return false;
    }
    const { after = "5m", accepts, safe } = rollback;
    const elapsed = this.#clock.wallTime() - (since ?? 0);
    return elapsed > milliseconds(after, "rollback.after") &&
      (accepts?.(stable.spec, target.spec) ?? true) &&
      await (safe?.(this.#run) ?? true);
  }

  async #rollBack(): Promise<PassEnding> {
    const rollout = this.#rollout;
    rollout.phase = "RollingBack";
    this.#run.ctx.events.normal(
      "Rollback",
      `Generation ${
        rollout.target!.generation
      } did not become stable: going back to generation ${
        rollout.stable!.generation
      }`,
    );
    await this.#flush();
    return await this.#upgrade(rollout.stable!);
  }

  /** Looks after what runs while nothing is to be changed. */
  async #steady(valid: boolean): Promise<PassEnding> {
    const rollout = this.#rollout;
    if (valid) {
      this.#status.observedGeneration = this.#asked.generation;
      await this.#flush();
    }
    if (!rollout.running) return "interval";
    if (await this.#tend()) return "poll";
    return this.#seen !== undefined && this.#definition.stable(this.#seen)
      ? "interval"
      : "poll";
  }

  async #tend(): Promise<boolean> {
    const deployed = this.#deployed();
    if (this.#seen === undefined || deployed === undefined) return false;
    return await this.#definition.steady?.(this.#run, {
      seen: this.#seen,
      deployed: deployed.spec,
    }) ?? false;
  }

  #announce(diff: SpecDiff): void {
    this.#run.ctx.events.normal("SpecChanged", diffText(diff));
  }

  get #status(): NonNullable<PhasedObject["status"]> {
    return this.#run.object.status!;
  }

  /** The spec of what runs. */
  #deployed(): ChosenSpec<SpecOf<P>> | undefined {
    const { phase, stable, target } = this.#rollout;
    return phase === "RolledBack" ? stable : target;
  }

  #isParked(): boolean {
    return this.#isParkedSpec(this.#asked.spec);
  }

  #isParkedSpec(spec: SpecOf<P>): boolean {
    return this.#definition.parked?.(spec) ?? false;
  }

  #isStableSpec(): boolean {
    const { stable } = this.#rollout;
    return stable !== undefined &&
      this.#definition.diff(stable.spec, this.#asked.spec).change === "none";
  }
}
