/**
 * Runs the benchmarks: `run.ts [--only NAME]… [--subject NAME]…
 * [--rounds N | --minutes N] [--json FILE]`.
 *
 * Every subject runs in a fresh process, alternating with its rivals, in rounds
 * whose order is reversed each time; the output has medians and spread.
 *
 * Unless the number of rounds is given, each bench has as many rounds as fit
 * into its share of the time, and at least one; unused time goes to later
 * benches.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import {
  type Bench,
  loadBench,
  type Measure,
  MissingError,
  type Prepared,
  type Remark,
  type Result,
  type Subject,
} from "./support/bench.ts";
import { buildRivals } from "./support/built_rivals.ts";
import { installRivals } from "./support/rival.ts";
import { resultsOf, table } from "./support/report.ts";
import { currentRuntime, machine } from "./support/runtime.ts";
import {
  benchNames,
  compileSubjects,
  runSubject,
} from "./support/subject_process.ts";
import { commandLine } from "../tests/support/command_line.ts";

const DEFAULT_ROUNDS = 5;
/** Time limit of all benches together. */
const DEFAULT_MINUTES = 30;

/** Limits of a bench. */
interface Effort {
  readonly rounds: number;
  /** End of the bench's time, on the scale of `performance.now`. */
  readonly until: number;
  /** Names of subjects; all if empty. */
  readonly wanted: readonly string[];
}

/** Reason why a subject cannot run here, if any. */
async function missing({ needs }: Subject): Promise<string | undefined> {
  if (needs === undefined) return undefined;
  if (needs !== "npm") return await buildRivals(needs);
  await installRivals();
  return undefined;
}

/** Results of a bench. */
interface Outcome {
  readonly results: readonly Result[];
  readonly remarks: readonly Remark[];
}

async function runBench(bench: Bench, effort: Effort): Promise<Outcome> {
  const { wanted } = effort;
  const subjects = bench.subjects.filter(({ name }) =>
    wanted.length === 0 || wanted.includes(name)
  );
  const remarks: Remark[] = [];
  const here: Subject[] = [];
  for (const subject of subjects) {
    const { name, settings } = subject;
    const why = await missing(subject);
    if (why === undefined) here.push(subject);
    remarks.push({ bench: bench.name, subject: name, settings, missing: why });
  }
  await compileSubjects(bench.name);
  let prepared: Prepared | undefined;
  try {
    prepared = await bench.prepare?.();
  } catch (error) {
    if (!(error instanceof MissingError)) throw error;
    return {
      results: [],
      remarks: remarks.map((remark) => ({ ...remark, missing: error.message })),
    };
  }
  if (prepared?.note !== undefined) {
    process.stderr.write(`${bench.name}: ${prepared.note}\n`);
  }
  try {
    return {
      results: await runRounds(bench, here, { ...effort, prepared }),
      remarks,
    };
  } finally {
    await prepared?.stop();
  }
}

/** Runs subjects in turn, in rounds whose order is reversed each time. */
async function runRounds(
  bench: Bench,
  subjects: readonly Subject[],
  { rounds, until, prepared }: Effort & {
    readonly prepared: Prepared | undefined;
  },
): Promise<readonly Result[]> {
  const measures = new Map<string, (readonly Measure[])[]>(
    subjects.map(({ name }) => [name, []]),
  );
  let longest = 0;
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    if (round > 0 && from + longest > until) break;
    const order = round % 2 === 0 ? subjects : subjects.toReversed();
    for (const { name: subject, rounds: most = Infinity } of order) {
      if (round >= most) continue;
      const { name } = bench;
      const measured = await runSubject({ bench: name, subject, prepared });
      measures.get(subject)?.push(measured);
    }
    longest = Math.max(longest, performance.now() - from);
  }
  return [...measures].flatMap(([subject, rounds]) =>
    resultsOf({ bench, subject, rounds })
  );
}

/** Command that repeats the run. */
function commandText(
  { only, subject, ...effort }: {
    readonly only: string[];
    readonly subject: string[];
    readonly rounds?: string;
    readonly minutes?: string;
  },
): string {
  const options = [
    ...only.map((name) => `--only ${name}`),
    ...subject.map((name) => `--subject "${name}"`),
  ];
  for (const name of ["rounds", "minutes"] as const) {
    if (effort[name] !== undefined) options.push(`--${name} ${effort[name]}`);
  }
  const [runtime] = currentRuntime().name.split(" ");
  const script = runtime === "node" ? "bench" : `bench:${runtime}`;
  return ["npm run", script, ...options.length > 0 ? ["--"] : [], ...options]
    .join(" ");
}

async function main(): Promise<void> {
  const { values, positive, integer } = commandLine("run benchmarks", {
    only: { type: "string", multiple: true, default: [] },
    subject: { type: "string", multiple: true, default: [] },
    rounds: { type: "string" },
    minutes: { type: "string" },
    json: { type: "string" },
  });
  const rounds = integer("rounds", 1);
  const minutes = positive("minutes") ??
    (rounds === undefined ? DEFAULT_MINUTES : Infinity);
  const command = commandText(values);
  const results: Result[] = [];
  const remarks: Remark[] = [];
  const names = benchNames(values.only);
  const unknown = new Set(values.subject);
  const end = performance.now() + minutes * 60_000;
  for (const [index, name] of names.entries()) {
    const bench = await loadBench(name);
    for (const { name } of bench.subjects) unknown.delete(name);
    const now = performance.now();
    const own = await runBench(bench, {
      rounds: rounds ?? bench.rounds ?? DEFAULT_ROUNDS,
      until: now + (end - now) / (names.length - index),
      wanted: values.subject,
    });
    process.stdout.write(`${table(bench, own.results, own.remarks)}\n\n`);
    results.push(...own.results);
    remarks.push(...own.remarks.filter((one) => one.settings ?? one.missing));
    if (values.json !== undefined) {
      const { name: runtime } = currentRuntime();
      const report = { runtime, machine: machine(), command, results, remarks };
      writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
    }
  }
  if (unknown.size === 0) return;
  throw new Error(
    `Cannot run benchmarks: there is no such subject: received ${
      [...unknown].join(", ")
    }`,
  );
}

try {
  await main();
} catch (error) {
  // The output of the subject is part of the message.
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
