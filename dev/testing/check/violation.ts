import type { Plan } from "./plan.ts";
import type { RunRecord } from "./run_record.ts";
import type { Scenario } from "./workload.ts";

/** A violation that an oracle has found in a run. */
export interface Violation {
  /** Name of the oracle. */
  readonly oracle: string;
  /** Human-readable description, in one sentence. */
  readonly text: string;
  /** Writes that the violation concerns. */
  readonly writes: readonly string[];
  /** Differences between the states; empty for a violation without any. */
  readonly diff: string;
  /** Step of the workload after which the violation appears. */
  readonly step: number;
  /** Signature; violations with the same signature are one finding. */
  readonly signature: string;
}

/** Run that oracles judge, with its plan and its reference run. */
export interface Case {
  readonly scenario: Scenario;
  readonly plan: Plan;
  readonly reference: RunRecord;
  readonly run: RunRecord;
  /** Differences between reference runs of different seeds, to be ignored. */
  readonly masked: ReadonlySet<string>;
  /** Those of them that the user has named. */
  readonly ignored?: ReadonlySet<string> | undefined;
  /** Names of the primaries' kinds, such as `WebPage`. */
  readonly primaryKinds: ReadonlySet<string>;
}

/** Creates a violation. */
export function violation(
  oracle: string,
  text: string,
  rest: Partial<Violation> = {},
): Violation {
  return {
    oracle,
    text,
    writes: [],
    diff: "",
    step: 0,
    signature: `${oracle} ${text}`,
    ...rest,
  };
}

/** Number of times, in words. */
export function times(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : `${count} times`;
}
