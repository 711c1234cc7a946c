import type { Clock } from "../clock.ts";
import type { ShardAssignment } from "../controller/shard.ts";
import { linkedSignal } from "../linked_signal.ts";
import type { Logger } from "../logger.ts";
import type { Mandate } from "./fence.ts";
import { heldUntil, type LeaseTimes } from "./lease_decision.ts";
import type { LeasedMember } from "./shard_leases.ts";
import {
  isOurs,
  sameView,
  type ShardMember,
  type ShardState,
} from "./shard_view.ts";

/** How the members of a group tell each other of themselves. */
export interface MembershipStore {
  publish(view: readonly string[], signal: AbortSignal): Promise<void>;
  members(signal: AbortSignal): Promise<readonly LeasedMember[]>;
  remove(identity: string, signal: AbortSignal): Promise<void>;
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

/** A member that says nothing for so many lease durations is cleaned up. */
const LONG_DEAD = 10;

/** How a member was last seen. */
interface SeenMember {
  readonly member: LeasedMember;
  readonly seenAt: number;
}

/**
 * Shares the objects among the replicas of an operator, and hands them over when
 * replicas come and go, so that no object runs in two of them at once.
 *
 * Each member renews a Lease that also tells its view: among whom it shares. When
 * a member sees that others live than in its view, it first ends its runs of what
 * it would lose, then publishes the new view, and only then looks at the views of
 * the others; see `shard_view.ts` for why that suffices.
 *
 * A member that cannot renew in time stops by itself before others take it for
 * dead.
 */
export class Sharding implements ShardAssignment {
  readonly #setting: ShardingSetting;
  readonly #ending: AbortController = new AbortController();
  readonly #seen: Map<string, SeenMember> = new Map();
  #state: ShardState;
  /** When the last renewal that succeeded was sent. */
  #renewedAt = -Infinity;
  /** Whether the runs of what the next view takes away have ended. */
  #yielded = false;
  /** Fulfilled when nothing runs any more after everything was lost. */
  #recovered: Promise<void> = Promise.resolve();
  /** Ends the pause between two steps. */
  #wake: () => void = () => {};
  #term = new AbortController();
  #loop: Promise<void> | undefined;

  /** @param setting What it works with. */
  constructor(setting: ShardingSetting) {
    this.#setting = setting;
    this.#state = {
      identity: setting.identity,
      view: [],
      next: undefined,
      others: [],
    };
  }

  /** The members among whom this one shares, itself included. */
  get view(): readonly string[] {
    return this.#state.view;
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

  /** Leaves the group. Nothing must run any more. */
  async stop(): Promise<void> {
    const { store, identity, log, clock, times } = this.#setting;
    this.#ending.abort();
    await this.#loop;
    if (!this.#holds) return;
    this.#renewedAt = -Infinity;
    const limit = new AbortController();
    const timer = clock.setTimer(() => limit.abort(), times.retryPeriod);
    try {
      await store.remove(identity, limit.signal);
    } catch (error) {
      log.warn("Cannot leave the shard group, others wait for the lease", {
        error,
      });
    } finally {
      timer.cancel();
    }
  }

  get #holds(): boolean {
    const { clock, times } = this.#setting;
    return clock.now() < heldUntil(this.#renewedAt, times);
  }

  async #run(): Promise<void> {
    const { clock, times, log } = this.#setting;
    while (!this.#ending.signal.aborted) {
      const at = clock.now();
      const giveUp = Math.max(
        this.#renewedAt + times.renewDeadline,
        at + times.retryPeriod,
      );
      const limit = new AbortController();
      const timer = clock.setTimer(() => limit.abort(), giveUp - at);
      const link = linkedSignal(limit.signal, this.#ending.signal);
      try {
        await this.#step(link.signal);
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        log.warn("Cannot reach the shard group", { error });
        this.#checkLost();
      } finally {
        timer.cancel();
        link.unlink();
      }
      await this.#sleep(Math.max(0, at + times.retryPeriod - clock.now()));
    }
  }

  /** Renews, sees who lives, and moves towards their view. */
  async #step(signal: AbortSignal): Promise<void> {
    this.#checkLost();
    // What still runs from before is not offered to others.
    await this.#recovered;
    const { store, clock, log, onGain } = this.#setting;
    const { view, next } = this.#state;
    const adopted = this.#yielded && next !== undefined ? next : view;
    const sentAt = clock.now();
    await store.publish(adopted, signal);
    const before = this.#holds ? this.#state : undefined;
    this.#renewedAt = sentAt;
    if (adopted !== view) {
      this.#yielded = false;
      this.#state = { ...this.#state, view: adopted, next: undefined };
      log.info("Objects are shared anew", { members: adopted });
    }
    this.#look(await store.members(signal));
    if (before === undefined || mayGain(before, this.#state)) {
      onGain((key) => before !== undefined && isOurs(key, before));
    }
    this.#prepareNext();
  }

  /** Takes a look at the members into account. */
  #look(members: readonly LeasedMember[]): void {
    const { clock, identity, store, log } = this.#setting;
    const now = clock.now();
    const names = new Set(members.map((member) => member.identity));
    for (const name of this.#seen.keys()) {
      if (!names.has(name)) this.#seen.delete(name);
    }
    const others: ShardMember[] = [];
    for (const member of members) {
      if (member.identity === identity) continue;
      const seen = this.#seen.get(member.identity);
      const seenAt = seen?.member.resourceVersion === member.resourceVersion
        ? seen.seenAt
        : now;
      this.#seen.set(member.identity, { member, seenAt });
      const silence = now - seenAt;
      // The same view is the same object, so that it is compared at once.
      const { view } = this.#state;
      if (silence < member.duration) {
        others.push(sameView(member.view, view) ? { ...member, view } : member);
      } else if (silence > LONG_DEAD * member.duration) {
        store.remove(member.identity, this.#ending.signal).catch(
          (error: unknown) =>
            log.debug("Cannot clean up a member that is gone", { error }),
        );
      }
    }
    this.#state = { ...this.#state, others };
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
      this.#wake();
    });
  }

  /** Gives everything up if others may take this member for dead. */
  #checkLost(): void {
    if (this.#renewedAt === -Infinity) return;
    const { clock, times, log, onLost, onYield } = this.#setting;
    const { renewDeadline } = times;
    if (clock.now() < this.#renewedAt + renewDeadline && this.#holds) return;
    log.warn("This replica is no member of its shard group any more");
    this.#renewedAt = -Infinity;
    this.#state = { ...this.#state, view: [], next: undefined };
    this.#yielded = false;
    this.#term.abort(
      new Error(
        "Cannot go on: this replica is no member of its shard group any more: received a stop",
      ),
    );
    this.#term = new AbortController();
    onLost();
    this.#recovered = onYield();
  }

  #sleep(duration: number): Promise<void> {
    const { signal } = this.#ending;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        this.#wake = () => {};
        timer.cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#wake = end;
      const timer = this.#setting.clock.setTimer(end, duration);
      signal.addEventListener("abort", end);
    });
  }
}

/** Whether objects may be ours in one state that were not in another. */
function mayGain(before: ShardState, after: ShardState): boolean {
  const others = (state: ShardState) =>
    state.others.map(({ identity, view }) => [identity, ...view]);
  const [a, b] = [others(before), others(after)];
  return !sameView(before.view, after.view) || a.length !== b.length ||
    a.some((member, index) => !sameView(member, b[index] ?? []));
}
