import { ApiError } from "../api/api_error.ts";
import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { microTimestamp } from "../api/timestamp.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { LeaseRecord } from "./lease_decision.ts";

/** A Lease, as far as it is a lock. */
export interface Lease extends KubernetesObject {
  spec?: LeaseSpec | undefined;
}

/** Who holds a Lease, and since when. */
export interface LeaseSpec {
  holderIdentity?: string | undefined;
  leaseDurationSeconds?: number | undefined;
  acquireTime?: string | undefined;
  renewTime?: string | undefined;
  leaseTransitions?: number | undefined;
}

/** The kind of Leases. */
export const Lease: ResolvedKind<Lease> = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  scope: "Namespaced",
};

/**
 * A duration as a Lease tells it, in whole seconds. It never tells less than its
 * holder counts on: others would take over too soon.
 */
export function leaseSeconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1_000);
}

/** Who holds Leases, where, and for how long. */
export interface LeaseHolder {
  readonly client: Client;
  readonly clock: Clock;
  readonly namespace: string;
  /** Who holds them; unique among all that are and all that ever were. */
  readonly identity: string;
  /** How long one is held since it was last renewed, in milliseconds. */
  readonly leaseDuration: number;
}

/** Which Lease is the lock, and who wants it. */
export interface LeaseLockOptions extends LeaseHolder {
  readonly name: string;
}

/**
 * A Lease as a lock: whoever is its holder, and renews it, has it. Every write is
 * conditional on what was read, so that of two who write one fails.
 */
export class LeaseLock {
  readonly #options: LeaseLockOptions;
  /** What was read last, to be written back. */
  #spec: LeaseSpec = {};

  /** @param options Which Lease, and who wants it. */
  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /** Where it is, for logs. */
  get text(): string {
    return `${this.#options.namespace}/${this.#options.name}`;
  }

  /** What the Lease says; undefined if there is none. */
  async read(signal: AbortSignal): Promise<LeaseRecord | undefined> {
    const { client, namespace, name } = this.#options;
    const lease = await client.find(Lease, { namespace, name }, { signal });
    return lease && this.#record(lease);
  }

  /**
   * Makes the Lease, held by us.
   *
   * @returns What it says now; undefined if somebody else was quicker.
   */
  async create(signal: AbortSignal): Promise<LeaseRecord | undefined> {
    const { client, namespace, name } = this.#options;
    return await this.#write(() =>
      client.create(Lease, {
        metadata: { namespace, name },
        spec: this.#held({}, true),
      }, { signal })
    );
  }

  /**
   * Takes or renews the Lease, if it has not changed since it was read.
   *
   * @param record What was read.
   * @param transition Whether somebody else held it before.
   * @returns What it says now; undefined if somebody else was quicker.
   */
  async take(
    record: LeaseRecord,
    transition: boolean,
    signal: AbortSignal,
  ): Promise<LeaseRecord | undefined> {
    return await this.#replace(
      record,
      this.#held(this.#spec, transition),
      signal,
    );
  }

  /** Gives the Lease back, so that another takes it at once. */
  async release(record: LeaseRecord, signal: AbortSignal): Promise<void> {
    const now = microTimestamp(this.#options.clock.wallTime());
    await this.#replace(record, {
      ...this.#spec,
      holderIdentity: "",
      leaseDurationSeconds: 1,
      renewTime: now,
      acquireTime: now,
    }, signal);
  }

  #held(before: LeaseSpec, transition: boolean): LeaseSpec {
    const { identity, leaseDuration, clock } = this.#options;
    const now = microTimestamp(clock.wallTime());
    const { leaseTransitions, acquireTime, ...others } = before;
    return {
      ...others,
      holderIdentity: identity,
      leaseDurationSeconds: leaseSeconds(leaseDuration),
      renewTime: now,
      acquireTime: transition ? now : acquireTime ?? now,
      leaseTransitions: leaseTransitions === undefined
        ? 0
        : leaseTransitions + Number(transition),
    };
  }

  #replace(
    { resourceVersion }: LeaseRecord,
    spec: LeaseSpec,
    signal: AbortSignal,
  ): Promise<LeaseRecord | undefined> {
    const { client, namespace, name } = this.#options;
    return this.#write(() =>
      client.replace(Lease, {
        metadata: { namespace, name, resourceVersion },
        spec,
      }, { signal })
    );
  }

  async #write(send: () => Promise<Lease>): Promise<LeaseRecord | undefined> {
    try {
      return this.#record(await send());
    } catch (error) {
      // Changed, made or deleted by somebody else meanwhile.
      if (
        ApiError.is(error) &&
        (error.isConflict || error.isAlreadyExists || error.isNotFound)
      ) return undefined;
      throw error;
    }
  }

  #record({ metadata, spec = {} }: Lease): LeaseRecord {
    this.#spec = spec;
    return {
      holder: spec.holderIdentity ?? "",
      duration: (spec.leaseDurationSeconds ?? 1) * 1_000,
      resourceVersion: metadata.resourceVersion ?? "",
    };
  }
}
