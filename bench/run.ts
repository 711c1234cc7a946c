/**
 * Runs the benchmarks:
 * `run.ts [--only NAME]… [--rounds N | --minutes N] [--json FILE]`.
 *
 * Every subject runs in a fresh process, by turns with its rivals, in rounds
 * whose order is turned round each time; told are the medians and the spread.
 *
 * Unless the number of rounds is given, each bench has as many as fit into its
 * share of the time, and one at least: what a short one leaves is for those that
 * follow.
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
/** All of them are to be done within a quarter of an hour. */
const DEFAULT_MINUTES = 13;

/** When a bench has done enough. */
interface Effort {
  readonly rounds: number;
  /** When its time is over, as `performance.now` tells it. */
  readonly until: number;
}

/** Whether a subject can run here; says so if not. */
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
  { rounds, until }: Effort,
): Promise<Result[]> {
  const here: Subject[] = [];
  for (const subject of bench.subjects) {
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
        const told = await runSubject({ bench: name, subject, prepared });
        measures.get(subject)?.push(told);
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

/** How one gets the same again. */
function commandText(
  { only, ...effort }: {
    readonly only: string[];
    readonly rounds?: string;
    readonly minutes?: string;
  },
): string {
  const options = only.map((name) => `--only ${name}`);
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
  // What a subject said is part of the message.
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
