import type { StoreUsage } from "./object_store.ts";

/** A store that can make room, as a budget sees it. */
export interface BudgetMember {
  /** How many bytes the member uses. */
  usage(): StoreUsage;
  /**
   * Moves cold objects a tier down.
   *
   * @param bytes How much to free.
   * @returns How much was freed.
   */
  sink(bytes: number): number;
}

/**
 * How many bytes all the caches of an operator may use together.
 *
 * @example A budget of 96 MiB
 * ```ts
 * import { MemoryBudget } from "@coracle/operator/core";
 *
 * const budget = new MemoryBudget("96MiB");
 * if (budget.limit !== 96 * 1024 * 1024) throw new Error("Unexpected limit");
 * ```
 */
export declare class MemoryBudget {
  /**
   * @param limit Bytes, or text such as `96MiB`, `1Gi` or `500M`.
   * @throws {SyntaxError} If the text is not a size.
   */
  constructor(limit: number | string);

  /** The bytes allowed; may be set to another number at any time. */
  limit: number;
  /** The bytes used by all members. */
  get used(): number;
}
