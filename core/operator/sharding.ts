import { type Clock, deadline, sleep } from "../clock.ts";
import type { ShardAssignment } from "../controller/shard.ts";
import { linkedSignal } from "../signals.ts";
import type { Logger } from "../logger.ts";
import type { Mandate } from "./fence.ts";
import {
  giveUpAt,
  heldUntil,
  type LeaseTimes,
  type ReleaseOptions,
  renewBy,
} from "./lease_decision.ts";
import { SeenMembers } from "./seen_members.ts";
import type { LeasedMember } from "./shard_leases.ts";
import { isOurs, mayGain, sameView, type ShardState } from "./shard_view.ts";

/** How the members of a group tell each other of themselves. */
export interface MembershipStore {
  /** @returns Whether it renewed what stood without a break since the last time. */
  publish(view: readonly string[], signal: AbortSignal): Promise<boolean>;
  members(signal: AbortSignal): Promise<readonly LeasedMember[]>;
  leave(signal: AbortSignal): Promise<void>;
  remove(member: LeasedMember, signal: AbortSignal): Promise<void>;
}

/** What {@linkcode Sharding} works with. */
export interface ShardingSetting {
  readonly store: MembershipStore;
  readonly identity: string;
  readonly times: LeaseTimes;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all runs of what is not ours any more; fulfilled when none is left. */
  readonly onYield: () => Promise<void>;
  /** Objects may have become ours that were not before. */
  readonly onGain: (wasOurs: (key: string) => boolean) => void;
  /** Nothing is ours any more: runs must end at once. */
  readonly onLost: () => void;
}

/**
 * Shares the objects among the replicas of an operator, and hands them over when
 * replicas come and go, so that no object runs in two of them at once.
 *
 * Each member renews a Lease that also tells its *view*: among whom it shares.
 * By rendezvous hashing an object falls to one member of a view; a member
 * *claims* what falls to it in the view that it has published. When it sees that
 * others live than those of its view, it ends its runs of what it would lose,
 * publishes the new view, looks at the others' claims, and only then runs what it
 * has gained.
 *
 * Rules
 * 1. A member runs only what it claims and goes on to claim, and only if no
 *    other living member claimed it when it last looked; and it looks after each
 *    publishing, before it goes by the new view.
 * 2. It gives up a claim only when its run of the object has ended.
 * 3. It runs nothing once nine tenths of a lease duration have passed since it
 *    sent the last renewal that succeeded. A renewal that is answered later than
 *    that does not count: the member ends all its runs, and joins anew with an
 *    empty view.
 * 4. It takes another for dead only if that one's Lease had not changed for a
 *    whole lease duration, counted from when it saw the answer that showed it
 *    first to when it asked for the one that shows it still.
 * 5. Writes are conditional on the version before, so that one that comes late
 *    changes nothing; and no two members, not even of different times, have the
 *    same name.
 *
 * Why no object runs twice: suppose that A and B both run one. Both have claimed
 * it without a break since before they last looked (rules 1, 2 and 5), say A
 * first. B looked after it claimed the object, hence after A had claimed it, so
 * that B saw A's claim, and ran the object only because it took A for dead
 * (rule 1). Then A's Lease had not changed for a lease duration when B asked
 * (rule 4), and A had run nothing for a tenth of it (rule 3). A runs the object
 * again only after it has joined anew and claimed it anew, later than B: then it
 * is A that sees B's claim. So one of them does not run it.
 *
 * It holds as far as Leases can: the clocks of two machines may not run apart by
 * more than a tenth, nobody deletes the Leases of living members, and a write
 * that was sent within the term arrives within that tenth.
 *
 * Who waits for whom is settled in the end, since all members come to see the
 * same ones living, and in the same view claims do not overlap. Only a run that
 * never ends is waited for as long as its member lives.
 */
export class Sharding implements ShardAssignment {
  readonly #setting: ShardingSetting;
  readonly #ending: AbortController = new AbortController();
  readonly #seen: SeenMembers = new SeenMembers();
  #state: ShardState;
  /** When the last renewal that succeeded was sent; -Infinity for no member. */
  #renewedAt = -Infinity;
  /** Whether the runs of what the next view takes away have ended. */
  #yielded = false;
  /** Fulfilled when nothing runs any more after everything was lost. */
  #recovered: Promise<void> = Promise.resolve();
  /** Ends the pause between two attempts. */
  #wake = new AbortController();
  #term = new AbortController();
  #loop: Promise<void> | undefined;

  /** @param setting What it works with. */
  constructor(setting: ShardingSetting) {
    this.#setting = setting;
    this.#state = outside(setting.identity);
  }

  /** What lets this replica write: that others cannot take it for dead. */
  get mandate(): Mandate {
    const holds = () => this.#holds;
    const term = () => this.#term.signal;
    return {
      get holds() {
        return holds();
      },
      get signal() {
        return term();
      },
      lack: "is not a member of its shard group",
    };
  }

  owns(key: string): boolean {
    return this.#holds && isOurs(key, this.#state);
  }

  /** Joins the group; returns at once. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /**
   * Leaves the group.
   *
   * @param options Whether others take over at once.
   */
  async stop(options: ReleaseOptions = {}): Promise<void> {
    const { store, log, clock, times } = this.#setting;
    this.#ending.abort();
    await this.#loop;
    if (!this.#isMember) return;
    this.#renewedAt = -Infinity;
    this.#endTerm();
    if (options.release === false) return;
    try {
      await deadline((signal) => store.leave(signal), times.retryPeriod, {
        clock,
      });
    } catch (error) {
      log.warn("Cannot leave the shard group, others wait for the lease", {
        error,
      });
    }
  }

  get #isMember(): boolean {
    return this.#renewedAt !== -Infinity;
  }

  get #holds(): boolean {
    const { clock, times } = this.#setting;
    return clock.now() < heldUntil(this.#renewedAt, times);
  }

  async #run(): Promise<void> {
    const { clock, times } = this.#setting;
    const { signal } = this.#ending;
    const ended = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve())
    );
    let previousAt = clock.now();
    while (!signal.aborted) {
      if (!this.#isMember) await Promise.race([this.#recovered, ended]);
      const at = clock.now();
      this.#wake = new AbortController();
      await this.#attempt({ at, previousAt });
      previousAt = at;
      const renewAt = this.#isMember
        ? renewBy(this.#renewedAt, times)
        : Infinity;
      const next = Math.min(at + times.retryPeriod, renewAt);
      const link = linkedSignal(signal, this.#wake.signal);
      await sleep(Math.max(0, next - clock.now()), {
        clock,
        signal: link.signal,
      }).catch(() => {}); // Woken, or stopped.
      link.unlink();
    }
  }

  /** Tries once to renew, and gives everything up when it is too late. */
  async #attempt(
    attempt: { readonly at: number; readonly previousAt: number },
  ): Promise<void> {
    const { clock, times, log } = this.#setting;
    const { at } = attempt;
    const giveUp = this.#isMember
      ? giveUpAt(this.#renewedAt, attempt, times)
      : at + times.renewDeadline;
    if (giveUp <= at) return this.#lose("it could not renew in time");
    const { signal } = this.#ending;
    try {
      await deadline((signal) => this.#step(signal), giveUp - at, {
        clock,
        signal,
        awaitsEnd: true,
      });
    } catch (error) {
      if (signal.aborted) return;
      log.warn("Cannot reach the shard group", { error });
      if (clock.now() >= giveUp) this.#lose("it could not renew in time");
    }
  }

  /** Renews, sees who lives, and moves towards their view. */
  async #step(signal: AbortSignal): Promise<void> {
    const { store, clock, log, onGain, identity } = this.#setting;
    const before = this.#state;
    const changes = this.#yielded && before.next !== undefined;
    const view = changes ? before.next as readonly string[] : before.view;
    const sentAt = clock.now();
    const renewed = await store.publish(view, signal);
    if (this.#isMember && !(renewed && this.#holds)) {
      return this.#lose("others may have taken over meanwhile");
    }
    this.#renewedAt = sentAt;
    const askedAt = clock.now();
    const { living, gone } = this.#seen.look(
      (await store.members(signal)).filter((one) => one.identity !== identity),
      { askedAt, answeredAt: clock.now() },
    );
    this.#state = {
      identity,
      view,
      next: changes ? undefined : before.next,
      // The same view is the same array, so that it is compared at once.
      others: living.map((one) =>
        sameView(one.view, view) ? { ...one, view } : one
      ),
    };
    if (changes) {
      this.#yielded = false;
      log.info("Objects are shared anew", { members: view });
    }
    if (mayGain(before, this.#state)) onGain((key) => isOurs(key, before));
    this.#prepareNext();
    for (const member of gone) this.#cleanUp(member);
  }

  /** Begins to change to the view of those who live, if it is another. */
  #prepareNext(): void {
    const { identity, others, view, next } = this.#state;
    if (next !== undefined) return;
    const living = [identity, ...others.map((member) => member.identity)];
    living.sort();
    if (sameView(living, view)) return;
    this.#state = { ...this.#state, next: living };
    void this.#setting.onYield().then(() => {
      if (this.#state.next !== living) return;
      this.#yielded = true;
      this.#wake.abort();
    });
  }

  /** Gives everything up: others may take this member for dead. */
  #lose(because: string): void {
    if (!this.#isMember) return;
    const { identity, log, onLost, onYield } = this.#setting;
    log.warn("This replica is no member of its shard group any more", {
      because,
    });
    this.#renewedAt = -Infinity;
    this.#state = outside(identity);
    this.#yielded = false;
    this.#endTerm();
    onLost();
    this.#recovered = onYield();
  }

  /** Ends the writes under way; those of a later term are others. */
  #endTerm(): void {
    this.#term.abort(
      new Error(
        "Cannot go on: this replica is no member of its shard group any more: received a stop",
      ),
    );
    this.#term = new AbortController();
  }

  #cleanUp(member: LeasedMember): void {
    const { store, log } = this.#setting;
    store.remove(member, this.#ending.signal).catch((error: unknown) =>
      log.debug("Cannot clean up a member that is gone", {
        member: member.identity,
        error,
      })
    );
  }
}

/** How a member goes by nothing yet. */
function outside(identity: string): ShardState {
  return { identity, view: [], next: undefined, others: [] };
}
