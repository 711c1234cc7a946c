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
import { parseArgs } from "node:util";
import {
  type Bench,
  loadBench,
  type Measure,
  type Result,
  type Subject,
} from "./support/bench.ts";
import { buildGoRivals } from "./support/go_rivals.ts";
import { positive } from "./support/positive.ts";
import { installRivals } from "./support/rival.ts";
import { resultsOf, table } from "./support/report.ts";
import { currentRuntime, machine } from "./support/runtime.ts";
import {
  benchNames,
  compileSubjects,
  runSubject,
} from "./support/subject_process.ts";

const DEFAULT_ROUNDS = 5;
/** Time limit of all benches together. */
const DEFAULT_MINUTES = 13;

/** Limits of a bench. */
interface Effort {
  readonly rounds: number;
  /** End of the bench's time, on the scale of `performance.now`. */
  readonly until: number;
  /** Names of subjects; all if empty. */
  readonly wanted: readonly string[];
}

/** Whether a subject can run here; prints the reason if not. */
async function canRun(
  bench: Bench,
  { name, needs }: Subject,
): Promise<boolean> {
  if (needs === "npm") await installRivals();
  if (needs !== "go" || await buildGoRivals()) return true;
  process.stderr.write(
    `${bench.name}: without ${name}, which needs a Go toolchain\n`,
  );
  return false;
}

async function runBench(
  bench: Bench,
  { rounds, until, wanted }: Effort,
): Promise<Result[]> {
  const here: Subject[] = [];
  for (const subject of bench.subjects) {
    if (wanted.length > 0 && !wanted.includes(subject.name)) continue;
    if (await canRun(bench, subject)) here.push(subject);
  }
  const measures = new Map<string, (readonly Measure[])[]>(
    here.map(({ name }) => [name, []]),
  );
  await compileSubjects(bench.name);
  const prepared = await bench.prepare?.();
  if (prepared?.note !== undefined) {
    process.stderr.write(`${bench.name}: ${prepared.note}\n`);
  }
  try {
    let longest = 0;
    for (let round = 0; round < rounds; round++) {
      const from = performance.now();
      if (round > 0 && from + longest > until) break;
      const subjects = round % 2 === 0 ? here : here.toReversed();
      for (const { name: subject, rounds: most = Infinity } of subjects) {
        if (round >= most) continue;
        const { name } = bench;
        const measured = await runSubject({ bench: name, subject, prepared });
        measures.get(subject)?.push(measured);
      }
      longest = Math.max(longest, performance.now() - from);
    }
  } finally {
    await prepared?.stop();
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
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      subject: { type: "string", multiple: true, default: [] },
      rounds: { type: "string" },
      minutes: { type: "string" },
      json: { type: "string" },
    },
  });
  const rounds = positive("--rounds", values.rounds);
  const minutes = positive("--minutes", values.minutes) ??
    (rounds === undefined ? DEFAULT_MINUTES : Infinity);
  const command = commandText(values);
  const results: Result[] = [];
  const names = benchNames(values.only);
  const end = performance.now() + minutes * 60_000;
  for (const [index, name] of names.entries()) {
    const bench = await loadBench(name);
    const now = performance.now();
    const own = await runBench(bench, {
      rounds: rounds ?? bench.rounds ?? DEFAULT_ROUNDS,
      until: now + (end - now) / (names.length - index),
      wanted: values.subject,
    });
    process.stdout.write(`${table(bench, own)}\n\n`);
    results.push(...own);
    if (values.json !== undefined) {
      const { name: runtime } = currentRuntime();
      const report = { runtime, machine: machine(), command, results };
      writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
    }
  }
}

try {
  await main();
} catch (error) {
  // The output of the subject is part of the message.
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
