import type { Toolchain } from "./built_rivals.ts";

/** Value over time: pairs of seconds and values, in order. */
export type Curve = readonly (readonly [seconds: number, value: number])[];

/** Number that a subject measured. */
export interface Measure {
  /** Unit, such as `µs/event` or `B/object`. */
  readonly unit: string;
  readonly value: number;
  /** Curve over time, if recorded. */
  readonly curve?: Curve | undefined;
}

/** Line of the report, as `--json` writes it. */
export interface Result {
  readonly bench: string;
  readonly subject: string;
  readonly unit: string;
  /** Median of all rounds. */
  readonly value: number;
  readonly min: number;
  readonly max: number;
  /** Curve of the first round, if recorded. */
  readonly curve?: Curve | undefined;
}

/** Subject of a bench. */
export interface Subject {
  readonly name: string;
  /**
   * Does the work once, in a process of its own, verifies it, and returns the
   * measures, the main one first.
   *
   * @throws {Error} If the work was not done correctly.
   */
  run(): Promise<readonly Measure[]>;
  /** Number of rounds of this subject, if fewer than of the others. */
  readonly rounds?: number | undefined;
  /** Whether the subject is a rival or a baseline, not Coracle. */
  readonly rival?: boolean | undefined;
  /**
   * Requirement: packages of `bench/package.json`, which are installed, or a
   * toolchain, without which the subject is not measured.
   */
  readonly needs?: "npm" | Toolchain | undefined;
  /** Settings that matter for the comparison, for the report. */
  readonly settings?: string | undefined;
}

/** Remark of the report about a subject. */
export interface Remark {
  readonly bench: string;
  readonly subject: string;
  /** Its settings. */
  readonly settings?: string | undefined;
  /** Reason why it was not measured, such as `no cargo`. */
  readonly missing?: string | undefined;
}

/** Error of {@linkcode Bench.prepare}: something is not installed. */
export class MissingError extends Error {}

/** Resources that all subjects of a bench share while it runs. */
export interface Prepared {
  /** Note for the report. */
  readonly note?: string | undefined;
  /** Environment variables for the subjects. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Benchmark with its subjects. A file `bench/NAME_bench.ts` exports one. */
export interface Bench {
  readonly name: string;
  /** Summary in one line. */
  readonly what: string;
  readonly subjects: readonly Subject[];
  /** Maximum number of rounds; fewer if time runs out. */
  readonly rounds?: number | undefined;
  /** Loads the modules that only some subjects load, when they run. */
  load?(): Promise<unknown>;
  /**
   * Starts resources that all subjects share, and builds what they import.
   *
   * @param checkouts Folders whose library is measured; only the project by
   * default.
   * @throws {MissingError} If they are not installed; nothing is measured then.
   */
  prepare?(checkouts?: readonly string[]): Promise<Prepared>;
}

/**
 * Throws if the work was not done, since a subject must not win by doing
 * nothing.
 */
export function verify(done: boolean, what: string): void {
  if (!done) throw new Error(`Cannot count a run: ${what}`);
}

/** Bench with a given name, such as `watch-path` of `watch_path_bench.ts`. */
export async function loadBench(name: string): Promise<Bench> {
  const file = `../${name.replaceAll("-", "_")}_bench.ts`;
  return (await import(file) as { bench: Bench }).bench;
}
