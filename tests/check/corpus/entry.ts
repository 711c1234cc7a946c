import type { UntypedObject } from "@coracle/operator";

/** Facts about an operator of the corpus. */
export interface CorpusEntry {
  /** The seeded bug; absent from correct operators. */
  readonly bug?: {
    /**
     * Kinds of plans; one of them must find the bug; `none` is the reference
     * run, and what is compared with it by another path.
     */
    readonly plans: readonly string[];
    /** Part of a write that a finding must name. */
    readonly write: string;
  };
  /**
   * Whether tests leave it to `npm run check:corpus`: the bug is a loop, whose runs
   * take seconds, or an error that is not handled, which runners of tests report.
   */
  readonly isAlone?: true;
  /**
   * Objects that are there once an object of the kind has settled: `Kind name`, and
   * perhaps a label that it must have.
   */
  readonly expects: readonly string[];
  /** Objects of the workload, if those from the schema are not enough. */
  readonly examples?: readonly UntypedObject[];
}
