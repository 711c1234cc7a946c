import type { ChosenSpec, RolloutStatus } from "./phased_status.ts";

/** How the log reads specs that an older version of the operator stored. */
export interface StoredSpecs<Spec> {
  /** The version in which specs are stored now. */
  readonly version: string;
  /** Makes a spec of this version from one of another. */
  readonly convert?:
    | ((stored: unknown, version: string | undefined) => Spec)
    | undefined;
}

/**
 * The transitions of a rollout's write-ahead log. They change the status in
 * memory; it is for the pass to write it at the right moments.
 *
 * @typeParam Spec The type of the specs.
 */
export class RolloutLog<Spec> {
  /** The log as it stands in the status. */
  readonly status: RolloutStatus<Spec>;
  /** Whether the present attempt was promised earlier and did not land. */
  #unlanded = false;

  /**
   * Reads a log.
   *
   * @param status Where it stands.
   * @param stored How older specs are read.
   */
  constructor(status: RolloutStatus<Spec>, stored: StoredSpecs<Spec>) {
    this.status = status;
    const { version, convert } = stored;
    if (convert === undefined) return;
    for (const which of ["target", "stable"] as const) {
      const choice = status[which];
      if (choice === undefined || choice.version === version) continue;
      const spec = convert(choice.spec, choice.version);
      status[which] = { ...choice, spec, version };
    }
  }

  /** The spec of what runs, or would if it were not suspended. */
  get deployed(): ChosenSpec<Spec> | undefined {
    const { phase, stable, target } = this.status;
    return phase === "RolledBack" ? stable : target;
  }

  /** Whether a change is under way. */
  get isChanging(): boolean {
    const { phase, target } = this.status;
    return target !== undefined &&
      (phase === "Upgrading" || phase === "RollingBack");
  }

  /** The attempt of which it is not known whether it landed. */
  get inFlight(): string | undefined {
    const { running, attempt } = this.status;
    return this.isChanging && !running ? attempt : undefined;
  }

  /** The attempt in flight did not take place. */
  markNotDeployed(asked: ChosenSpec<Spec>): void {
    this.#unlanded = true;
    const { target } = this.status;
    if (target?.first && target.generation !== asked.generation) {
      // Nothing was ever there: what is asked for now is the first again.
      delete this.status.target;
    }
  }

  /** The attempt took place. */
  markDeployed(): void {
    const { status } = this;
    status.phase = status.phase === "RollingBack" ? "RolledBack" : "Deployed";
    status.running = true;
    status.healthy = false;
    delete status.savepoint;
    if (status.target?.first) {
      const { first: _, ...target } = status.target;
      status.target = target;
    }
  }

  /** What runs does its work, or does not. */
  recordObservation(healthy: boolean): void {
    const { status } = this;
    status.healthy = healthy;
    if (healthy && status.phase === "Deployed") status.stable = status.target;
  }

  /**
   * Announces what is about to be deployed.
   *
   * @returns Whether this is new; an attempt that did not land is announced
   * already, and is tried again under its stamp.
   */
  recordDeployment(choice: ChosenSpec<Spec>, now: number): boolean {
    const { status } = this;
    const [generation, counter = "0"] = status.attempt?.split(".") ?? [];
    if (this.#unlanded && generation === String(choice.generation)) {
      if (status.phase === "RollingBack" || status.target !== undefined) {
        return false;
      }
    }
    if (status.phase !== "RollingBack") {
      status.phase = "Upgrading";
      status.target = choice;
    }
    status.attempt = `${choice.generation}.${Number(counter) + 1}`;
    status.running = false;
    status.healthy = false;
    status.since = now;
    return true;
  }

  /** Something else is to be deployed, but what runs must be stopped first. */
  markSuspending(): void {
    const { status } = this;
    // What runs after a rollback is the stable spec, from now on by that name.
    if (status.phase === "RolledBack") status.target = status.stable;
    // A rollback that waits for its suspension stays one.
    if (status.phase !== "RollingBack") status.phase = "Upgrading";
  }

  /** Nothing runs any more. */
  markSuspended(savepoint: unknown): void {
    this.status.running = false;
    this.status.healthy = false;
    if (savepoint === undefined) delete this.status.savepoint;
    else this.status.savepoint = savepoint;
  }

  /** What was deployed is to be deployed once more. */
  markRecovering(savepoint: unknown): void {
    const { status } = this;
    status.phase = status.phase === "RolledBack" ? "RollingBack" : "Upgrading";
    this.markSuspended(savepoint);
  }

  /** What is asked for is in force without a deployment. */
  markInForce(choice: ChosenSpec<Spec>): void {
    this.status.phase = "Deployed";
    this.status.target = choice;
    this.status.stable = choice;
  }
}
