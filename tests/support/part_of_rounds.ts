/**
 * fast-check with a part of the rounds: `FC_ROUNDS=0.25` takes a quarter.
 *
 * @module
 */

import process from "node:process";
import * as fastCheck from "fast-check";

export * from "fast-check";

const { FC_PATH, FC_ROUNDS } = process.env;
/** One that is run again has all, since its path counts them. */
const PART = FC_PATH ? 1 : Number(FC_ROUNDS ?? 1);

/** The part of a number of rounds that is to be run, at least one. */
export function partOfRounds(all: number): number {
  return Math.max(1, Math.ceil(all * PART));
}

/** Checks a property, as fast-check's own function of this name. */
export const assert: typeof fastCheck.assert = ((
  property: fastCheck.IRawProperty<unknown>,
  parameters: fastCheck.Parameters<unknown> = {},
) => {
  const numRuns = partOfRounds(parameters.numRuns ?? 100);
  return fastCheck.assert(property, { ...parameters, numRuns });
}) as typeof fastCheck.assert;
