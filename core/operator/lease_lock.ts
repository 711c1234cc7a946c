import { ApiError } from "../api/api_error.ts";
import { builtIn, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { microTimestamp } from "../api/timestamp.ts";
import type { Client } from "../client/client.ts";
import { type Clock, loadModule } from "../clock.ts";
import type { LeaseSpec } from "./lease_data.ts";
import type { LeaseRecord } from "./lease_decision.ts";

/** Lease of `coordination.k8s.io`, with the fields of a lock. */
export interface Lease extends KubernetesObject {
  spec?: LeaseSpec | undefined;
}

/** Kind `Lease` of `coordination.k8s.io/v1`. */
export const Lease: ResolvedKind<Lease> = builtIn(
  "Lease",
  "Namespaced",
  "coordination.k8s.io",
);

/** Verbs on Leases that the options of an operator need. */
export const LEASE_VERBS = {
  leaderElection: ["get", "create", "update"],
  sharding: ["get", "list", "create", "update", "delete"],
} as const;

/**
 * Duration in a Lease, in whole seconds. It is rounded up, since otherwise
 * others would take over too early.
 */
export function leaseSeconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1_000);
}

/** Loads the checks of data in Leases with the first of them. */
export function loadLeaseData(): Promise<typeof import("./lease_data.ts")> {
  return loadModule(import("./lease_data.ts"));
}

export interface LeaseHolderDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly namespace: string;
  /** Name of the Lease, or of the group of Leases that it belongs to. */
  readonly name: string;
  /** Identity of the holder; unique among all present and past holders. */
  readonly identity: string;
  /** Time for which a Lease is held after its last renewal, in milliseconds. */
  readonly leaseDuration: number;
}

/**
 * Lease as a lock. Every write is conditional on the version that was read, so
 * that one of two concurrent writes fails.
 */
export class LeaseLock {
  readonly #deps: LeaseHolderDeps;
  /** Lease that was read or written last; what others put there is written back. */
  #lease: Lease | undefined;

  constructor(deps: LeaseHolderDeps) {
    this.#deps = deps;
  }

  /** Reads the Lease; undefined if absent. */
  async read(signal: AbortSignal): Promise<LeaseRecord | undefined> {
    const { client, namespace, name } = this.#deps;
    const lease = await client.find(Lease, { namespace, name }, { signal });
    return lease && await this.#record(lease);
  }

  /**
   * Creates the Lease as its holder.
   *
   * @returns The Lease; undefined if another candidate was faster.
   */
  async create(signal: AbortSignal): Promise<LeaseRecord | undefined> {
    const { client, namespace, name } = this.#deps;
    return await this.#write(() =>
      client.create(Lease, {
        metadata: { namespace, name },
        spec: this.#held({}, true),
      }, { signal })
    );
  }

  /**
   * Acquires or renews the Lease if it has not changed since it was read.
   *
   * @param transition Whether another candidate held it before.
   * @returns The Lease; undefined if another candidate was faster.
   */
  async acquire(
    record: LeaseRecord,
    transition: boolean,
    signal: AbortSignal,
  ): Promise<LeaseRecord | undefined> {
    const spec = this.#held(this.#lease?.spec ?? {}, transition);
    return await this.#replace(record, spec, signal);
  }

  /**
   * Releases the Lease, so that another candidate acquires it immediately. Reads
   * it again if it has changed: a renewal that was aborted may have been stored.
   */
  async release(record: LeaseRecord, signal: AbortSignal): Promise<void> {
    let held: LeaseRecord | undefined = record;
    while (held?.holder === this.#deps.identity) {
      const now = microTimestamp(this.#deps.clock.wallTime());
      const released = await this.#replace(held, {
        ...this.#lease?.spec,
        holderIdentity: "",
        leaseDurationSeconds: 1,
        renewTime: now,
        acquireTime: now,
      }, signal);
      if (released !== undefined) return;
      held = await this.read(signal);
    }
  }

  #held(before: LeaseSpec, transition: boolean): LeaseSpec {
    const { identity, leaseDuration, clock } = this.#deps;
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
    const { client, namespace, name } = this.#deps;
    return this.#write(() =>
      client.replace(Lease, {
        ...this.#lease,
        metadata: {
          ...this.#lease?.metadata,
          namespace,
          name,
          resourceVersion,
        },
        spec,
      }, { signal })
    );
  }

  async #write(send: () => Promise<Lease>): Promise<LeaseRecord | undefined> {
    try {
      return await this.#record(await send());
    } catch (error) {
      // Another candidate has changed, created or deleted the Lease.
      if (
        ApiError.is(error) &&
        (error.isConflict || error.isAlreadyExists || error.isNotFound)
      ) return undefined;
      throw error;
    }
  }

  async #record(lease: Lease): Promise<LeaseRecord> {
    const { readLeaseSpec } = await loadLeaseData();
    const { metadata } = lease;
    const spec = readLeaseSpec(lease.spec);
    this.#lease = { ...lease, spec };
    return {
      holder: spec.holderIdentity ?? "",
      duration: (spec.leaseDurationSeconds ?? 1) * 1_000,
      resourceVersion: metadata.resourceVersion ?? "",
    };
  }
}
