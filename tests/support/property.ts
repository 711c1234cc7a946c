/**
 * fast-check as all property tests import it: a failure prints seed and path,
 * `FC_SEED=… FC_PATH=… node --test --test-name-pattern=… FILE` runs it again,
 * and a run that hangs fails instead of waiting indefinitely. `FC_ROUNDS=0.25`
 * takes a quarter of the rounds.
 *
 * @module
 */

import process from "node:process";
import * as fc from "./part_of_rounds.ts";

const { FC_SEED, FC_PATH, FC_REPLAY_PATH } = process.env;
/** Milliseconds after which one run of an asynchronous property has failed. */
const RUN_LIMIT_MS = 20_000;
/** Milliseconds after which a property draws and shrinks no further values. */
const PROPERTY_LIMIT_MS = 55_000;

fc.configureGlobal({
  timeout: RUN_LIMIT_MS,
  interruptAfterTimeLimit: PROPERTY_LIMIT_MS,
  ...FC_SEED ? { seed: Number(FC_SEED) } : {},
  // The failing values themselves, without a search for smaller ones.
  ...FC_PATH ? { path: FC_PATH, endOnFailure: true } : {},
});

/** Options of `fc.commands`: the commands of the failing run are run again. */
export const REPLAYED: { readonly replayPath?: string } = FC_REPLAY_PATH
  ? { replayPath: FC_REPLAY_PATH }
  : {};
export { fc };
