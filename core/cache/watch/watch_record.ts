import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { InformerMetrics } from "../informer/informer_metrics.ts";
import type { WatchHealth, WatchState } from "../informer/informer_options.ts";

/** What a {@linkcode WatchRecord} works with. */
export interface WatchRecordParts {
  readonly namespace: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: InformerMetrics;
}

/** What went wrong, and while doing what. */
export interface Failure {
  readonly error: unknown;
  /** What to count it as. */
  readonly reason: string;
  /** What was done, to read after "Cannot", where that is known. */
  readonly action: string | undefined;
}

/** What a reflector tells of itself: its health, its metrics, its log. */
export class WatchRecord {
  readonly #parts: WatchRecordParts;
  readonly #clock: Clock;
  #lastError: WatchHealth["lastError"];
  #consecutiveFailures = 0;
  #lastContact: number | undefined;
  #watchStart: number | undefined;
  #relists = 0;
  #errors = 0;

  state: WatchState = "stopped";
  synced = false;

  constructor(parts: WatchRecordParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
  }

  /** Bytes came. */
  contact(): void {
    this.#lastContact = this.#clock.wallTime();
  }

  /** Something that makes sense came: the connection works again. */
  works(): void {
    this.#consecutiveFailures = 0;
  }

  /** Something failed; it will be tried again. */
  failed(failure: Failure): void {
    const { log, metrics } = this.#parts;
    const { reason } = failure;
    const message = describe(failure);
    this.#lastError = { message, at: this.#clock.wallTime() };
    this.#consecutiveFailures++;
    this.#errors++;
    metrics.error(reason);
    log.warn("A list or watch failed; it is tried again", {
      error: message,
      reason,
      failures: this.#consecutiveFailures,
    });
  }

  /** A state begins to be read; not the first one counts as a relist. */
  beginState(): void {
    if (!this.synced) return;
    this.#relists++;
    this.#parts.metrics.relist();
  }

  watchOpened(): void {
    this.#watchStart = this.#clock.now();
  }

  /** A watch ended, if one was open. */
  watchClosed(): void {
    const age = this.#watchAge();
    if (age !== undefined) this.#parts.metrics.watchEnded(age);
    this.#watchStart = undefined;
  }

  /** As it is now; a value of its own. */
  health(): WatchHealth {
    return {
      namespace: this.#parts.namespace,
      state: this.state,
      synced: this.synced,
      lastError: this.#lastError,
      consecutiveFailures: this.#consecutiveFailures,
      lastContact: this.#lastContact,
      watchAge: this.#watchAge(),
      relists: this.#relists,
      errors: this.#errors,
    };
  }

  #watchAge(): number | undefined {
    return this.#watchStart === undefined
      ? undefined
      : this.#clock.now() - this.#watchStart;
  }
}

/** The error as a person reads it: what failed to be read names no kind. */
function describe({ error, action }: Failure): string {
  const message = error instanceof Error ? error.message : String(error);
  return action === undefined || message.includes(action)
    ? message
    : `Cannot ${action}: ${message.replace(/^C/, "c")}`;
}
