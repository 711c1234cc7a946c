import type { Clock } from "../clock.ts";
import type { WatchHealth, WatchState } from "./informer_options.ts";

/** What a reflector notes down of itself, for people and metrics. */
export class WatchRecord {
  readonly #clock: Clock;
  readonly #namespace: string | undefined;
  #lastError: WatchHealth["lastError"];
  #consecutiveFailures = 0;
  #lastContact: number | undefined;
  #watchStart: number | undefined;
  #relists = 0;
  #errors = 0;

  state: WatchState = "stopped";
  synced = false;

  constructor(clock: Clock, namespace: string | undefined) {
    this.#clock = clock;
    this.#namespace = namespace;
  }

  /** Failures since data last arrived. */
  get consecutiveFailures(): number {
    return this.#consecutiveFailures;
  }

  /** Bytes came. */
  contact(): void {
    this.#lastContact = this.#clock.wallTime();
  }

  /** Something that makes sense came: the connection works again. */
  works(): void {
    this.#consecutiveFailures = 0;
  }

  failed(message: string): void {
    this.#lastError = { message, at: this.#clock.wallTime() };
    this.#consecutiveFailures++;
    this.#errors++;
  }

  relisting(): void {
    this.#relists++;
  }

  watchOpened(): void {
    this.#watchStart = this.#clock.now();
  }

  /** The age that the watch reached, in milliseconds. */
  watchClosed(): number | undefined {
    const age = this.#watchAge();
    this.#watchStart = undefined;
    return age;
  }

  /** As it is now; a value of its own. */
  health(): WatchHealth {
    return {
      namespace: this.#namespace,
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
