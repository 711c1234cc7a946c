import { CostExceeded } from "./cel_errors.ts";

/** State of one evaluation. */
export interface Run {
  readonly variables: Readonly<Record<string, unknown>>;
  /** Values of the variables of comprehensions. */
  readonly slots: unknown[];
  spent: number;
  readonly limit: number;
}

/** Step of an evaluation: yields a value, which can be an error. */
export type Step = (run: Run) => unknown;

/**
 * Adds to the cost of an evaluation.
 *
 * @throws {CostExceeded} If that is more than the limit.
 */
export function charge(run: Run, cost: number): void {
  run.spent += cost;
  if (run.spent > run.limit) throw new CostExceeded();
}
