import { hostname } from "node:os";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Mandate } from "./fence.ts";
import {
  LeaderElection,
  type LeaderElectionSettings,
} from "./leader_election.ts";
import type { ReleaseOptions } from "./lease_decision.ts";
import { LeaseLock } from "./lease_lock.ts";
import { checkLeaseRights } from "./lease_rights.ts";

/** What {@linkcode Leadership} works with. */
export interface LeadershipSetting {
  readonly options: LeaderElectionSettings;
  /** Reaches the Lease whether or not this replica leads. */
  readonly client: Client;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Called when this replica begins to lead, and when it leads no more. */
  readonly onChange: (leading: boolean) => void;
}

/**
 * Whether this replica leads, and what follows from it: only the leader runs
 * what waits, and only its writes get through.
 */
export class Leadership {
  readonly #setting: LeadershipSetting;
  readonly #election: LeaderElection;
  readonly #namespace: string;
  /** Fires when this replica leads no more. */
  #term = new AbortController();

  /**
   * @param setting What it works with.
   */
  constructor(setting: LeadershipSetting) {
    const { options, client, clock, random, log, onChange } = setting;
    const identity = options.identity ??
      `${hostname()}_${crypto.randomUUID().slice(0, 8)}`;
    this.#setting = setting;
    this.#namespace = options.namespace ?? client.namespace;
    this.#election = new LeaderElection({
      lock: new LeaseLock({
        client,
        clock,
        namespace: this.#namespace,
        name: options.name,
        identity,
        leaseDuration: options.leaseDuration,
      }),
      identity,
      times: options,
      clock,
      random,
      log,
      onStarted: () => {
        this.#term = new AbortController();
        onChange(true);
      },
      onStopped: () => {
        this.#term.abort(
          new Error(
            "Cannot go on: this replica does not lead any more: received a stop",
          ),
        );
        onChange(false);
      },
      onNewLeader: (leader) => log.info("A leader was elected", { leader }),
    });
  }

  /** Whether this replica leads. */
  get isLeading(): boolean {
    return this.#election.isLeading;
  }

  /** Who leads, as far as it is known. */
  get leader(): string | undefined {
    return this.#election.leader;
  }

  /** What lets this replica write: that it leads for certain. */
  get mandate(): Mandate {
    const election = this.#election;
    const term = () => this.#term.signal;
    return {
      get holds() {
        return election.holds;
      },
      get signal() {
        return term();
      },
      lack: "does not lead",
    };
  }

  /** @throws {Error} If the right to use the Lease is missing. */
  async check(): Promise<void> {
    const { client, options } = this.#setting;
    const namespace = this.#namespace;
    await checkLeaseRights(client, {
      namespace,
      verbs: ["get", "create", "update"],
      purpose: `elect a leader by Lease ${namespace}/${options.name}`,
    });
  }

  /** Becomes a candidate; returns at once. */
  start(): void {
    this.#election.start();
  }

  /**
   * Is no candidate any more, and leads no more.
   *
   * @param options Whether others take over at once.
   */
  stop(options: ReleaseOptions = {}): Promise<void> {
    return this.#election.stop(options);
  }
}
