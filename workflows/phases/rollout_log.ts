import type { ChosenSpec, RolloutStatus } from "./phased_status.ts";

/**
 * Transitions of the write-ahead log of a rollout. They change the status in
 * memory; the run writes it.
 */
export class RolloutLog<Spec> {
  readonly status: RolloutStatus<Spec>;
  /** Whether the current attempt was recorded but not deployed. */
  #isNotDeployed = false;

  constructor(
    status: RolloutStatus<Spec>,
    { version, convert }: {
      readonly version: string;
      readonly convert: ((stored: unknown, from?: string) => Spec) | undefined;
    },
  ) {
    this.status = status;
    if (convert === undefined) return;
    for (const which of ["target", "stable"] as const) {
      const choice = status[which];
      if (choice === undefined || choice.version === version) continue;
      const spec = convert(choice.spec, choice.version);
      status[which] = { ...choice, spec, version };
    }
  }

  get deployed(): ChosenSpec<Spec> | undefined {
    const { phase, stable, target } = this.status;
    return phase === "RolledBack" ? stable : target;
  }

  get isChanging(): boolean {
    const { phase, target } = this.status;
    return target !== undefined &&
      (phase === "Upgrading" || phase === "RollingBack");
  }

  /** Attempt that may or may not have been deployed. */
  get inFlight(): string | undefined {
    const { running, attempt } = this.status;
    return this.isChanging && !running ? attempt : undefined;
  }

  /** Records that the attempt in flight was not deployed. */
  markNotDeployed(desired: ChosenSpec<Spec>): void {
    this.#isNotDeployed = true;
    const { target } = this.status;
    if (target?.first && target.generation !== desired.generation) {
      // Nothing was deployed before, so the desired spec is the first again.
      delete this.status.target;
    }
  }

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

  /** Records whether the deployment is stable. */
  recordObservation(healthy: boolean): void {
    const { status } = this;
    status.healthy = healthy;
    if (healthy && status.phase === "Deployed") status.stable = status.target;
  }

  /**
   * Records the next deployment.
   *
   * @returns Whether the log has changed; an attempt that was not deployed is
   * already recorded, and is retried with its id.
   */
  recordDeployment(choice: ChosenSpec<Spec>, now: number): boolean {
    const { status } = this;
    const [generation, counter = "0"] = status.attempt?.split(".") ?? [];
    if (this.#isNotDeployed && generation === String(choice.generation)) {
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

  /** Records that the deployment is being suspended before the next one. */
  markSuspending(): void {
    const { status } = this;
    // After a rollback the stable spec is running; it becomes the target.
    if (status.phase === "RolledBack") status.target = status.stable;
    // A rollback that waits for the suspension continues.
    if (status.phase !== "RollingBack") status.phase = "Upgrading";
  }

  markSuspended(savepoint: unknown): void {
    this.status.running = false;
    this.status.healthy = false;
    if (savepoint === undefined) delete this.status.savepoint;
    else this.status.savepoint = savepoint;
  }

  /** Records that the same spec is deployed again. */
  markRecovering(savepoint: unknown): void {
    const { status } = this;
    status.phase = status.phase === "RolledBack" ? "RollingBack" : "Upgrading";
    this.markSuspended(savepoint);
  }

  /** Records that the desired spec is in effect without a deployment. */
  markInForce(choice: ChosenSpec<Spec>): void {
    this.status.phase = "Deployed";
    this.status.target = choice;
    this.status.stable = choice;
  }
}
