import type { LeasedMember } from "./shard_leases.ts";

/** A member that says nothing for so many lease durations is cleaned up. */
const LONG_DEAD = 10;

/** When a look at the members was asked for and answered. */
export interface LookTimes {
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** What a look at the members shows. */
export interface Look {
  /** Those that may live, by their names. */
  readonly living: readonly LeasedMember[];
  /** Those that have been dead for so long that they will not come back. */
  readonly gone: readonly LeasedMember[];
}

/** Which members live, told from how long they have said nothing. */
export class SeenMembers {
  /** Since when a member has said what it last said, as far as we saw. */
  readonly #since: Map<string, { readonly version: string; at: number }> =
    new Map();

  /**
   * Takes a look at the other members into account.
   *
   * A member counts as dead only if it had said nothing for a lease duration
   * when the look was asked for: its answer may be older than it is late.
   */
  look(members: readonly LeasedMember[], times: LookTimes): Look {
    const names = new Set(members.map(({ identity }) => identity));
    for (const name of this.#since.keys()) {
      if (!names.has(name)) this.#since.delete(name);
    }
    const living: LeasedMember[] = [];
    const gone: LeasedMember[] = [];
    for (const member of members) {
      const silence = times.askedAt - this.#sinceOf(member, times.answeredAt);
      if (silence < member.duration) living.push(member);
      else if (silence > LONG_DEAD * member.duration) gone.push(member);
    }
    return {
      living: living.sort((a, b) => a.identity < b.identity ? -1 : 1),
      gone,
    };
  }

  #sinceOf(member: LeasedMember, now: number): number {
    const { identity, resourceVersion: version } = member;
    const seen = this.#since.get(identity);
    if (seen?.version === version) return seen.at;
    this.#since.set(identity, { version, at: now });
    return now;
  }
}
