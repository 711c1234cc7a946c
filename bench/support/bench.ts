/** A value over time: seconds and values, in order. */
export type Curve = readonly (readonly [seconds: number, value: number])[];

/** One number that a subject gave. */
export interface Measure {
  /** Such as `µs/event` or `B/object`. */
  readonly unit: string;
  readonly value: number;
  /** How it came to be, where that is of interest. */
  readonly curve?: Curve | undefined;
}

/** One line of the report; the form that `--json` writes. */
export interface Result {
  readonly bench: string;
  readonly subject: string;
  readonly unit: string;
  /** The median of all rounds. */
  readonly value: number;
  readonly min: number;
  readonly max: number;
  /** Of the first round, where it has one. */
  readonly curve?: Curve | undefined;
}

/** One contestant of a bench. */
export interface Subject {
  readonly name: string;
  /**
   * Does the work once, in a process of its own, checks that it was done, and
   * tells what it took. The first measure is the one that counts.
   *
   * @throws {Error} If the work was not done right.
   */
  run(): Promise<readonly Measure[]>;
  /** How many rounds of this subject, if fewer than of the others. */
  readonly rounds?: number | undefined;
  /** Whether it is somebody else's, or nobody's: not Coracle. */
  readonly rival?: boolean | undefined;
  /**
   * What must be there: the packages of `bench/package.json`, which are
   * installed, or a Go toolchain, without which it is left out.
   */
  readonly needs?: "npm" | "go" | undefined;
}

/** What all subjects of a bench share, while it runs. */
export interface Prepared {
  /** What to tell people of it. */
  readonly note?: string | undefined;
  /** Tells the subjects where it is. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** One question and all who answer it. A file `bench/NAME_bench.ts` exports one. */
export interface Bench {
  readonly name: string;
  /** What is done, in one line. */
  readonly what: string;
  readonly subjects: readonly Subject[];
  /** How many rounds of fresh processes at most; fewer if time runs out. */
  readonly rounds?: number | undefined;
  /** Starts what all subjects share. */
  prepare?(): Promise<Prepared>;
}

/** Throws if the work was not done: a bench must not win by doing nothing. */
export function verify(done: boolean, what: string): void {
  if (!done) throw new Error(`Cannot count a run: ${what}`);
}

/** The bench of a name, such as `watch-path` of `watch_path_bench.ts`. */
export async function loadBench(name: string): Promise<Bench> {
  const file = `../${name.replaceAll("-", "_")}_bench.ts`;
  return (await import(file) as { bench: Bench }).bench;
}
