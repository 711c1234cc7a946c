import { ifFound } from "../api/api_error.ts";
import type { ObjectKey } from "../api/object_key.ts";
import { microTimestamp } from "../api/timestamp.ts";
import {
  type LeaseRecord,
  observe,
  type ObservedLease,
} from "./lease_decision.ts";
import {
  Lease,
  type LeaseHolderDeps,
  leaseSeconds,
  loadLeaseData,
} from "./lease_lock.ts";

const GROUP_LABEL = "coracle.dev/shard-group";
const MEMBERS_ANNOTATION = "coracle.dev/shard-view";

/** Member of a shard group. */
export interface ShardMember {
  /** Identity of the member, unique in the group. */
  readonly identity: string;
  /**
   * Membership that the member has published: it claims the objects assigned to
   * it among these members, and runs no others. Empty for a member that joins.
   */
  readonly members: readonly string[];
}

/** Member of a shard group, with its Lease. */
export type LeasedMember = ShardMember & Omit<LeaseRecord, "holder">;

/**
 * Leases of the members of a shard group.
 *
 * Every write is conditional on the previous version, so that a write that was
 * given up and reaches the server late never overwrites a later one.
 */
export class ShardLeases {
  readonly #deps: LeaseHolderDeps;
  /**
   * This member's Lease after its last write, if known; what others put there is
   * written back.
   */
  #own: Lease | undefined;

  constructor(deps: LeaseHolderDeps) {
    this.#deps = deps;
  }

  /**
   * Renews the Lease of this member, with its current membership.
   *
   * @returns Whether there was a Lease to renew; otherwise others may have
   * considered the member to have left.
   */
  async publish(
    members: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client } = this.#deps;
    const own = this.#own ?? await this.#read(signal);
    // A write that fails may have reached the server.
    this.#own = undefined;
    if (own !== undefined) {
      // Its UID is sent too: the server would recreate a Lease that is gone.
      const next = this.#lease(members, own);
      this.#own = await ifFound(client.replace(Lease, next, { signal }));
      if (this.#own !== undefined) return true;
    }
    this.#own = await client.create(Lease, this.#lease(members), { signal });
    return false;
  }

  /**
   * Lists the Leases of all members, expired or not, as they are at some time
   * between the call and its return.
   */
  async members(signal: AbortSignal): Promise<readonly LeasedMember[]> {
    const { client, namespace, name } = this.#deps;
    const labelSelector = `${GROUP_LABEL}=${name}`;
    // Without a resourceVersion the server answers with its latest state.
    const selection = { namespace, labelSelector, signal };
    const { items } = await client.list(Lease, selection);
    const { name: prefix } = this.#key("");
    const { readLeaseSpec, readMembers } = await loadLeaseData();
    // The holder is a text that a person can change; names are unique.
    return items.filter((lease) => lease.metadata.name.startsWith(prefix))
      .map(({ metadata, spec }) => ({
        identity: metadata.name.slice(prefix.length),
        members: readMembers(metadata.annotations?.[MEMBERS_ANNOTATION]),
        resourceVersion: metadata.resourceVersion ?? "",
        duration: (readLeaseSpec(spec).leaseDurationSeconds ?? 1) * 1_000,
      }));
  }

  /** Deletes the Lease of this member. */
  async leave(signal: AbortSignal): Promise<void> {
    const { identity } = this.#deps;
    const own = this.#own ?? await this.#read(signal);
    if (own === undefined) return;
    const { resourceVersion = "" } = own.metadata;
    await this.remove({ identity, resourceVersion }, signal);
  }

  /** Deletes the Lease of a member if it was not renewed since it was read. */
  async remove(
    member: Pick<LeasedMember, "identity" | "resourceVersion">,
    signal: AbortSignal,
  ): Promise<void> {
    const { identity, resourceVersion } = member;
    const key = this.#key(identity);
    const options = { preconditions: { resourceVersion }, signal };
    await ifFound(this.#deps.client.delete(Lease, key, options));
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, identity } = this.#deps;
    return await client.find(Lease, this.#key(identity), { signal });
  }

  /** Lease of this member with its membership, as a change of the one before. */
  #lease(members: readonly string[], before?: Lease): Lease {
    const { clock, identity, leaseDuration, name } = this.#deps;
    const { labels, annotations } = before?.metadata ?? {};
    const membership = JSON.stringify(members);
    return {
      ...before,
      metadata: {
        ...before?.metadata,
        ...this.#key(identity),
        labels: { ...labels, [GROUP_LABEL]: name },
        annotations: { ...annotations, [MEMBERS_ANNOTATION]: membership },
      },
      spec: {
        ...before?.spec,
        holderIdentity: identity,
        leaseDurationSeconds: leaseSeconds(leaseDuration),
        renewTime: microTimestamp(clock.wallTime()),
      },
    };
  }

  #key(identity: string): Required<ObjectKey> {
    const { namespace, name } = this.#deps;
    return { namespace, name: `${name}-${identity}` };
  }
}

/** Number of lease durations after which a silent member is removed. */
const REMOVED_AFTER_DURATIONS = 10;

/** Tracker of the living members of a group, by how long each was silent. */
export class MemberTracker {
  #observed: Map<string, ObservedLease<LeasedMember>> = new Map();

  /**
   * Finds the other members that may be alive, sorted by identity, and those
   * that have been dead for so long that they will not return.
   *
   * A member counts as dead only if it was silent for a lease duration when the
   * request was sent: the response may show a state as old as the request.
   */
  observe(
    members: readonly LeasedMember[],
    times: { readonly askedAt: number; readonly answeredAt: number },
  ): Record<"living" | "expired", readonly LeasedMember[]> {
    const before = this.#observed;
    this.#observed = new Map();
    const living: LeasedMember[] = [];
    const expired: LeasedMember[] = [];
    for (const member of members) {
      const { identity, duration } = member;
      const lease = observe(before.get(identity), member, times.answeredAt);
      this.#observed.set(identity, lease);
      const silence = times.askedAt - lease.seenAt;
      if (silence < duration) living.push(member);
      else if (silence > REMOVED_AFTER_DURATIONS * duration) {
        expired.push(member);
      }
    }
    living.sort((a, b) => a.identity < b.identity ? -1 : 1);
    return { living, expired };
  }
}
