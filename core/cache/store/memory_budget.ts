import {
  checkOptions,
  type OptionRule,
  type OptionRules,
} from "../../api/options.ts";
import { parseByteSize } from "../../api/byte_size.ts";
import type { MemoryPressure } from "./memory_pressure.ts";

/** What a budget must have; two copies of the library may be loaded. */
export const BUDGET_PARTS: Readonly<Record<string, OptionRule>> = {
  charge: "function",
  leave: "function",
  mustWait: "function",
  settle: "function",
};

/** A store that can make room, as a budget sees it. */
export interface BudgetMember {
  /** How many bytes could sink by one tier or be forgotten. */
  readonly sinkable: number;
  /** Does one step of sinking, of about a millisecond. */
  sink(): void;
}

/** Options of a {@linkcode MemoryBudget}. */
export interface MemoryBudgetOptions {
  /**
   * How near the process is to the limit of its memory: caches shrink below
   * their budget when that is short.
   *
   * @default {nobody looks}
   */
  readonly pressure?: MemoryPressure | undefined;
}

const RULES: OptionRules<MemoryBudgetOptions> = { pressure: "object?" };
/**
 * The part of what the process may use that its caches always have: below it,
 * what takes the memory is something else.
 */
const LEAST_SHARE = 1 / 8;
/** How many steps of sinking one change of a store pays for, at most. */
const STEPS_PER_CHARGE = 2;

/**
 * How many bytes all the caches of an operator may use together. Stores that
 * share a budget tell it what they use; when it is too much, the one with the
 * most to gain moves its cold objects a tier down, a little with every change,
 * so that no change takes long.
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
  /** How near the process is to its limit; undefined if nobody looks. */
  readonly pressure: MemoryPressure | undefined;
  #limit: number;
  #used = 0;
  /** What each member said it uses. */
  readonly #members: Map<BudgetMember, number> = new Map();
  #sinking = false;

  /**
   * Makes a budget of which nothing is used.
   *
   * @param limit Bytes, or text such as `96MiB`, `1Gi` or `500M`.
   * @param options What else it depends on.
   * @throws {SyntaxError} If the text is not a size.
   * @throws {RangeError} If it is not a positive number of bytes.
   */
  constructor(limit: number | string, options: MemoryBudgetOptions = {}) {
    checkOptions(options, RULES, "a MemoryBudget");
    this.pressure = options.pressure;
    this.#limit = parseByteSize(limit);
  }

  /**
   * The bytes allowed. After it was lowered, stores shrink to it as they change,
   * or at once by {@linkcode MemoryBudget.settle}. It is set as in the
   * constructor: to a number of bytes, or to text such as `96MiB`.
   *
   * @throws {SyntaxError | RangeError} If it is set to what is no size.
   */
  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number | string) {
    this.#limit = parseByteSize(limit);
  }

  /** The bytes used by all members. */
  get used(): number {
    return this.#used;
  }

  /** The bytes allowed now: the limit, or less while memory is short. */
  get allowed(): number {
    const { pressure } = this;
    if (pressure === undefined) return this.#limit;
    const least = pressure.limit * LEAST_SHARE;
    return Math.min(this.#limit, Math.max(pressure.cap, least));
  }

  /** Whether more is used than allowed. */
  get isExceeded(): boolean {
    return this.#used > this.allowed;
  }

  /**
   * Looks how near the process is to its limit, and tells whether who fills
   * caches must wait: for room, or since memory becomes short.
   */
  mustWait(): boolean {
    this.pressure?.look(this.#used);
    return this.isExceeded || this.pressure?.isGrowing === true;
  }

  /** Takes note of what a store uses, and makes room if that is too much. */
  charge(member: BudgetMember, bytes: number): void {
    this.#used += bytes - (this.#members.get(member) ?? 0);
    this.#members.set(member, bytes);
    if (!this.#sinking && this.isExceeded) this.settle(STEPS_PER_CHARGE);
  }

  /** Forgets a store that was closed. */
  leave(member: BudgetMember): void {
    this.#used -= this.#members.get(member) ?? 0;
    this.#members.delete(member);
  }

  /**
   * Makes room until the limit is kept or nothing is left that could sink.
   *
   * @param steps How many steps, of about a millisecond each, at most.
   * @returns Whether it is done: false if more steps would help.
   */
  settle(steps: number = Infinity): boolean {
    this.#sinking = true;
    try {
      for (; this.isExceeded; steps--) {
        const member = this.#largest();
        if (member === undefined) return true;
        if (steps <= 0) return false;
        member.sink();
      }
      return true;
    } finally {
      this.#sinking = false;
    }
  }

  /** The member with the most to sink. */
  #largest(): BudgetMember | undefined {
    let largest: BudgetMember | undefined;
    let most = 0;
    for (const member of this.#members.keys()) {
      const { sinkable } = member;
      if (sinkable > most) {
        largest = member;
        most = sinkable;
      }
    }
    return largest;
  }
}
