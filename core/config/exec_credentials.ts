import type { Clock } from "../clock.ts";
import type { Credential, CredentialSource } from "./cluster_config.ts";
import {
  type ExecCredential,
  type ExecPlugin,
  readExecCredential,
} from "./exec_plugin.ts";

/** How long before its end a credential is replaced at most, in milliseconds. */
const MARGIN = 60_000;
/** How long to go on with a credential whose replacement failed. */
const PAUSE = 5_000;

/** What {@linkcode ExecCredentials} needs. */
export interface ExecCredentialsOptions {
  readonly clock: Clock;
  /** Runs the plug-in and gives what it printed. */
  run(plugin: ExecPlugin): Promise<string>;
}

/**
 * Credentials that a program gives. It runs when there is no credential yet,
 * shortly before one ends, and when the server refused one; it never runs twice
 * at the same time, however many requests wait for it.
 */
export class ExecCredentials implements CredentialSource {
  readonly #plugin: ExecPlugin;
  readonly #options: ExecCredentialsOptions;
  #present: ExecCredential | undefined;
  /** From when on the present one is to be replaced, in wall time. */
  #staleAt = Infinity;
  #running: Promise<Credential> | undefined;

  constructor(plugin: ExecPlugin, options: ExecCredentialsOptions) {
    this.#plugin = plugin;
    this.#options = options;
  }

  async current(): Promise<Credential> {
    const present = this.#present;
    const now = this.#options.clock.wallTime();
    if (present === undefined) return await this.#renew();
    if (now < this.#staleAt) return present.credential;
    try {
      return await this.#renew();
    } catch (error) {
      // Until it ends, the present one is better than none.
      const later = this.#options.clock.wallTime();
      if (later >= (present.expiresAt ?? Infinity)) throw error;
      this.#staleAt = later + PAUSE;
      return present.credential;
    }
  }

  async refresh(refused: Credential): Promise<Credential> {
    const present = this.#present?.credential;
    return present !== undefined && present !== refused
      ? present
      : await this.#renew();
  }

  #renew(): Promise<Credential> {
    return this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<Credential> {
    const { clock, run } = this.#options;
    const answer = readExecCredential(this.#plugin, await run(this.#plugin));
    const now = clock.wallTime();
    const { expiresAt = Infinity } = answer;
    this.#present = answer;
    // A tenth of its life, so that short-lived ones are not replaced all the
    // time.
    this.#staleAt = expiresAt - Math.min(MARGIN, (expiresAt - now) / 10);
    return answer.credential;
  }
}
