import { ownerAmong, type ShardAssignment } from "../controller/shard.ts";
import type { LogLevel } from "../logger.ts";
import { RenewedLease, type RenewedLeaseDeps } from "./renewed_lease.ts";
import {
  type LeasedMember,
  MemberTracker,
  type ShardLeases,
  type ShardMember,
} from "./shard_leases.ts";

/** State of a member of a shard group. */
export interface ShardState {
  /** Identity of the member. */
  readonly identity: string;
  /** Membership that was published before the last observation of others. */
  readonly members: readonly string[];
  /** Membership that the member is changing to; undefined without a change. */
  readonly nextMembers: readonly string[] | undefined;
  /** Other living members, as they were last observed. */
  readonly others: readonly ShardMember[];
}

/**
 * Whether a member owns an object, so that no other member does: it claims the
 * object, will continue to claim it, and observed no other member that does. The
 * proof is at {@linkcode Sharding}.
 */
export function isOwned(key: string, state: ShardState): boolean {
  const { identity, members, nextMembers, others } = state;
  if (!isClaimed(identity, key, members)) return false;
  if (nextMembers !== undefined && !isClaimed(identity, key, nextMembers)) {
    return false;
  }
  return !others.some((other) =>
    other.members !== members && isClaimed(other.identity, key, other.members)
  );
}

/** Whether a new state of a member may include objects not owned before. */
function mayAcquire(before: ShardState, after: ShardState): boolean {
  const { others } = before;
  return !isSameMembership(before.members, after.members) ||
    before.nextMembers !== after.nextMembers ||
    others.length !== after.others.length ||
    after.others.some(({ identity, members }, index) =>
      others[index]?.identity !== identity ||
      !isSameMembership(others[index].members, members)
    );
}

function isSameMembership(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length &&
    a.every((member, index) => member === b[index]);
}

function isClaimed(
  member: string,
  key: string,
  members: readonly string[],
): boolean {
  return members.length > 0 && ownerAmong(key, members) === member;
}

/** Store with which the members of a group observe each other. */
export type MembershipStore = Pick<
  ShardLeases,
  "publish" | "members" | "leave" | "remove"
>;

export interface ShardingDeps extends RenewedLeaseDeps {
  readonly store: MembershipStore;
  /** Callback that ends the runs of objects no longer owned; awaited. */
  readonly onRelease: () => Promise<void>;
  /** Callback for changes after which this replica may own more objects. */
  readonly onAcquire: (wasOwned: (key: string) => boolean) => void;
  /** Callback for the loss of all objects, whose runs must end immediately. */
  readonly onLost: () => void;
}

/**
 * Membership of a replica in a shard group: the objects of an operator are
 * divided among its replicas, and handed over when replicas start and stop, so
 * that no object runs in two replicas at the same time.
 *
 * Each member renews a Lease that also publishes its *membership*: the members
 * among which rendezvous hashing assigns an object to one. A member *claims*
 * the objects assigned to it in the membership that it has published. When it
 * observes that the living members are others, it ends its runs of the objects
 * that it would lose, publishes the new membership, observes the claims of the
 * others, and only then runs the objects that it has gained.
 *
 * Rules
 * 1. A member runs only objects that it claims and will continue to claim, and
 *    only if no other living member claimed them when it last observed the
 *    others; it observes them after each publication, before it applies the new
 *    membership.
 * 2. It gives up a claim only when its run of the object has ended.
 * 3. It runs nothing once nine tenths of a lease duration have passed since it
 *    sent the last successful renewal. A renewal that is answered later does
 *    not count: the member ends all its runs and joins again with an empty
 *    membership.
 * 4. It considers another member dead only if that member's Lease did not
 *    change for a whole lease duration, counted from the response that showed
 *    it first to the request whose response still shows it.
 * 5. Writes are conditional on the previous version, so that a late one changes
 *    nothing; and no two members, not even at different times, have the same
 *    name.
 *
 * Proof that no object runs twice: suppose that A and B both run the same
 * object. Both have claimed it without interruption since before they last
 * observed the others (rules 1, 2 and 5), say A first. B observed the others
 * after it claimed the object, hence after A had claimed it, so that B saw A's
 * claim and ran the object only because it considered A dead (rule 1). Then A's
 * Lease had not changed for a lease duration when B sent its request (rule 4),
 * and A had run nothing for a tenth of it (rule 3). A runs the object again
 * only after it has joined and claimed it again, later than B: then it is A
 * that sees B's claim. So one of them does not run it.
 *
 * The proof holds as far as Leases can: the clocks of two machines do not drift
 * apart by more than a tenth, nobody deletes the Leases of living members, and
 * a write that was sent within the term, that is, written to an open
 * connection, arrives within that tenth.
 *
 * Members do not wait for each other indefinitely: all of them come to observe
 * the same living members, and within one membership claims do not overlap.
 * Only a run that never ends is waited for as long as its member lives.
 */
export class Sharding extends RenewedLease<ShardingDeps>
  implements ShardAssignment {
  readonly role = "a member of its shard group";
  readonly #tracker: MemberTracker = new MemberTracker();
  #state: ShardState;
  /** Whether the runs that the next membership takes away have ended. */
  #released = false;
  /** Whether runs are still ending after the loss of the membership. */
  #recovering = false;

  constructor(deps: ShardingDeps) {
    super(deps);
    this.#state = joiningState(deps.identity);
  }

  owns(key: string): boolean {
    return this.isHeld && isOwned(key, this.#state);
  }

  protected override async release(signal: AbortSignal): Promise<void> {
    await this.deps.store.leave(signal);
  }

  /** Renews its Lease, reads those of the others and adopts the membership. */
  protected override async renew(
    sentAt: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#recovering) {
      throw new Error(
        "Cannot join the shard group again: runs from before the loss of the lease have not ended",
      );
    }
    const { store, clock, log, onAcquire, identity } = this.deps;
    const before = this.#state;
    const changes = this.#released && before.nextMembers !== undefined;
    const members = changes
      ? before.nextMembers as readonly string[]
      : before.members;
    const renewed = await store.publish(members, signal);
    if (this.isTaken && !(renewed && this.isHeld)) {
      return this.lose("other members may have taken over");
    }
    this.renewedAt = sentAt;
    const askedAt = clock.now();
    const all = await store.members(signal);
    const { living, expired } = this.#tracker.observe(
      all.filter((member) => member.identity !== identity),
      { askedAt, answeredAt: clock.now() },
    );
    this.#state = {
      identity,
      members,
      nextMembers: changes ? undefined : before.nextMembers,
      // Equal memberships share an array, so that isOwned compares identities.
      others: living.map((other) =>
        isSameMembership(other.members, members) ? { ...other, members } : other
      ),
    };
    if (changes) {
      log.info("Objects are divided among other members", { members });
    }
    if (mayAcquire(before, this.#state)) {
      onAcquire((key) => isOwned(key, before));
    }
    this.#prepareNext();
    for (const member of expired) this.#remove(member);
  }

  /** Starts a change of membership if other members are alive than before. */
  #prepareNext(): void {
    const { identity, others, members, nextMembers } = this.#state;
    if (nextMembers !== undefined) return;
    const living = [identity, ...others.map((member) => member.identity)];
    living.sort();
    if (isSameMembership(living, members)) return;
    this.#state = { ...this.#state, nextMembers: living };
    this.#released = false;
    void this.deps.onRelease().then(() => {
      if (this.#state.nextMembers !== living) return;
      this.#released = true;
      this.wake();
    });
  }

  protected override onLose(because: string, level: LogLevel): void {
    const { identity, log, onLost, onRelease } = this.deps;
    log[level](`This replica is no longer ${this.role}`, { because });
    this.#state = joiningState(identity);
    onLost();
    this.#recovering = true;
    void onRelease().then(() => this.#recovering = false);
  }

  #remove(member: LeasedMember): void {
    const { store, log } = this.deps;
    store.remove(member, this.ending).catch((error: unknown) =>
      log.debug("Cannot remove a dead member of the shard group", {
        member: member.identity,
        error,
      })
    );
  }
}

/** State of a member that joins and has no membership yet. */
function joiningState(identity: string): ShardState {
  return { identity, members: [], nextMembers: undefined, others: [] };
}
