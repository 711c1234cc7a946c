import {
  checkOptions,
  type OptionRule,
  type OptionRules,
} from "../../api/options.ts";
import { parseByteSize } from "../../api/byte_size.ts";
import type { MemoryPressure } from "./memory_pressure.ts";

/** Methods that identify a budget: two copies of its class may be loaded. */
export const BUDGET_PARTS: Readonly<Record<string, OptionRule>> = {
  charge: "function",
  leave: "function",
  mustWait: "function",
  settle: "function",
};

/** Store that shares a budget and can free memory. */
export interface BudgetMember {
  /** Number of bytes that could be moved to a lower tier or dropped. */
  readonly demotableBytes: number;
  /** Moves some objects to a lower tier, in about a millisecond. */
  demote(): void;
  /** Evicts the half of its decoded objects that was used least recently. */
  shrinkDecoded?(): void;
}

/** What a member uses, in bytes: in all, and of that for decoded objects. */
interface Usage {
  bytes: number;
  decoded: number;
}

/** Options of a {@linkcode MemoryBudget}. */
export interface MemoryBudgetOptions {
  /**
   * Memory pressure of the process: caches shrink below their budget while it is
   * high. No pressure is observed if absent.
   */
  readonly pressure?: MemoryPressure | undefined;
}

const RULES: OptionRules<MemoryBudgetOptions> = { pressure: "object?" };
/**
 * Share of the memory limit that caches always keep: if they use less, something
 * else uses the memory.
 */
const LEAST_SHARE = 1 / 8;
/**
 * Most bytes of decoded objects of all members together. They only save decoding, and
 * live on the JavaScript heap, which is collected less often the larger it is. A
 * thousand stores with a share of the budget each would keep all their objects.
 */
const MAX_DECODED_BYTES = 32 << 20;
/**
 * Number of members, of perhaps thousands, that are asked for each change while none
 * has something to demote.
 */
const ASKED_MEMBERS = 8;
/** Maximum number of demotion steps per change of a store. */
const STEPS_PER_CHARGE = 2;

/**
 * Memory budget that all caches of an operator share, in bytes. Stores report
 * their usage; when the budget is exceeded, the store with the most to gain
 * demotes its cold objects by a tier, a few with each change, so that no change
 * takes long.
 *
 * @example A budget of 96 MiB
 * ```ts
 * import { MemoryBudget } from "@coracle/operator/core";
 *
 * const budget = new MemoryBudget("96MiB");
 * if (budget.limit !== 96 * 1024 * 1024) throw new Error("Unexpected limit");
 * ```
 */
export class MemoryBudget {
  /**
   * Memory pressure of the process; undefined if it is not observed.
   *
   * @internal
   */
  readonly pressure: MemoryPressure | undefined;
  #limit: number;
  #used = 0;
  #decoded = 0;
  /** Reported usage by member. */
  readonly #members: Map<BudgetMember, Usage> = new Map();
  #demoting = false;
  /** Changes that are left until members are asked again, as none had to demote. */
  #unasked = 0;

  /**
   * Creates a budget without members.
   *
   * @param limit Bytes, or text such as `96MiB`, `1Gi` or `500M`.
   * @param options Memory pressure.
   * @throws {SyntaxError} If the text is not a size.
   * @throws {RangeError} If it is not a positive number of bytes.
   */
  constructor(limit: number | string, options: MemoryBudgetOptions = {}) {
    checkOptions(options, RULES, "a MemoryBudget");
    this.pressure = options.pressure;
    this.#limit = parseByteSize(limit);
  }

  /**
   * Limit in bytes. After it was lowered, stores shrink as they change, or
   * immediately by {@linkcode MemoryBudget.settle}. It may be set to text such as
   * `96MiB`, too.
   *
   * @throws {SyntaxError | RangeError} If it is set to an invalid size.
   */
  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number | string) {
    this.#limit = parseByteSize(limit);
    this.#unasked = 0;
  }

  /** Bytes used by all members. */
  get used(): number {
    return this.#used;
  }

  /** Bytes allowed now: the limit, or less while memory pressure is high. */
  get allowed(): number {
    const { pressure } = this;
    if (pressure === undefined) return this.#limit;
    const least = pressure.limit * LEAST_SHARE;
    return Math.min(this.#limit, Math.max(pressure.cap, least));
  }

  /** Whether more bytes are used than allowed. */
  get isExceeded(): boolean {
    return this.#used > this.allowed;
  }

  /**
   * Measures the memory pressure and returns whether caches must be filled more
   * slowly, because the budget is exceeded or the pressure grows.
   */
  mustWait(): boolean {
    this.pressure?.measure(this.#used);
    return this.isExceeded || this.pressure?.isGrowing === true;
  }

  /**
   * Sets the usage of a store, and demotes objects if the budget is exceeded.
   *
   * @param decoded Part of the bytes that decoded objects take.
   */
  charge(member: BudgetMember, bytes: number, decoded = 0): void {
    let usage = this.#members.get(member);
    if (usage === undefined) {
      this.#members.set(member, usage = { bytes: 0, decoded: 0 });
    }
    this.#used += bytes - usage.bytes;
    this.#decoded += decoded - usage.decoded;
    usage.bytes = bytes;
    usage.decoded = decoded;
    if (this.#demoting) return;
    if (this.#decoded > MAX_DECODED_BYTES) this.#shrinkDecoded();
    if (!this.isExceeded) this.#unasked = 0;
    else if (this.#unasked > 0) this.#unasked--;
    else this.settle(STEPS_PER_CHARGE);
  }

  /** Shrinks the member with the most decoded objects. */
  #shrinkDecoded(): void {
    let largest: BudgetMember | undefined;
    let most = 0;
    for (const [member, { decoded }] of this.#members) {
      if (decoded > most) [largest, most] = [member, decoded];
    }
    this.#demoting = true;
    try {
      largest?.shrinkDecoded?.();
    } finally {
      this.#demoting = false;
    }
  }

  /** Removes a closed store. */
  leave(member: BudgetMember): void {
    const { bytes = 0, decoded = 0 } = this.#members.get(member) ?? {};
    this.#used -= bytes;
    this.#decoded -= decoded;
    this.#members.delete(member);
  }

  /**
   * Demotes objects until the budget is met or nothing demotable is left.
   *
   * @param steps Maximum number of steps, of about a millisecond each.
   * @returns False if more steps would help.
   */
  settle(steps: number = Infinity): boolean {
    this.#demoting = true;
    try {
      for (; this.isExceeded; steps--) {
        const member = this.#largest();
        if (member === undefined) {
          this.#unasked = Math.floor(this.#members.size / ASKED_MEMBERS);
          return true;
        }
        if (steps <= 0) return false;
        member.demote();
      }
      return true;
    } finally {
      this.#demoting = false;
    }
  }

  /** Member with the most demotable bytes. */
  #largest(): BudgetMember | undefined {
    let largest: BudgetMember | undefined;
    let most = 0;
    for (const member of this.#members.keys()) {
      const { demotableBytes } = member;
      if (demotableBytes > most) {
        largest = member;
        most = demotableBytes;
      }
    }
    return largest;
  }
}
