/**
 * Runs the benchmarks: `run.ts [--only NAME] [--rounds N] [--json FILE]`.
 *
 * Every subject runs in a fresh process, by turns with its rivals, in rounds
 * whose order is turned round each time; told are the medians and the spread.
 *
 * @module
 */
import { execFile } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import {
  type Bench,
  loadBench,
  type Measure,
  type Prepared,
  type Subject,
} from "./support/bench.ts";
import { buildGoRivals } from "./support/go_rivals.ts";
import { type Result, resultsOf, table } from "./support/report.ts";
import { currentRuntime } from "./support/runtime.ts";

const DEFAULT_ROUNDS = 5;
const SUBJECT_TIMEOUT_MS = 10 * 60_000;

const runtime = currentRuntime();
const runFile = promisify(execFile);

async function runSubject(
  bench: string,
  subject: string,
  env: Prepared["env"] | undefined,
): Promise<Measure[]> {
  const file = fileURLToPath(
    new URL("./support/run_subject.ts", import.meta.url),
  );
  const { stdout } = await runFile(
    runtime.program,
    [...runtime.flags, file, bench, subject],
    {
      timeout: SUBJECT_TIMEOUT_MS,
      maxBuffer: 16 * 1024 * 1024,
      env: { ...process.env, ...env },
    },
  );
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

/** Whether a subject can run here; says so if not. */
async function canRun(
  bench: Bench,
  { name, needs }: Subject,
): Promise<boolean> {
  if (needs !== "go" || await buildGoRivals()) return true;
  process.stderr.write(
    `${bench.name}: without ${name}, which needs a Go toolchain\n`,
  );
  return false;
}

async function runBench(bench: Bench, rounds: number): Promise<Result[]> {
  const here: Subject[] = [];
  for (const subject of bench.subjects) {
    if (await canRun(bench, subject)) here.push(subject);
  }
  const measures = new Map<string, Measure[][]>(
    here.map(({ name }) => [name, []]),
  );
  const prepared = await bench.prepare?.();
  if (prepared?.note !== undefined) {
    process.stderr.write(`${bench.name}: ${prepared.note}\n`);
  }
  try {
    for (let round = 0; round < rounds; round++) {
      const subjects = round % 2 === 0 ? here : here.toReversed();
      for (const { name, rounds: most = Infinity } of subjects) {
        if (round >= most) continue;
        measures.get(name)?.push(
          await runSubject(bench.name, name, prepared?.env),
        );
      }
    }
  } finally {
    await prepared?.stop();
  }
  return [...measures].flatMap(([subject, rounds]) =>
    resultsOf({ bench, subject, rounds })
  );
}

/** The names of all benches, or of those asked for. */
function namesOf(only: readonly string[]): string[] {
  const all = readdirSync(new URL(".", import.meta.url))
    .filter((file) => file.endsWith("_bench.ts"))
    .map((file) => file.slice(0, -"_bench.ts".length).replaceAll("_", "-"))
    .sort();
  const unknown = only.find((name) => !all.includes(name));
  if (unknown !== undefined) {
    throw new Error(
      `Cannot run benchmarks: there are ${all.join(", ")}: received ${unknown}`,
    );
  }
  return only.length === 0 ? all : all.filter((name) => only.includes(name));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string" },
      json: { type: "string" },
    },
  });
  const results: Result[] = [];
  for (const name of namesOf(values.only)) {
    const bench = await loadBench(name);
    const rounds = Number(values.rounds ?? bench.rounds ?? DEFAULT_ROUNDS);
    const own = await runBench(bench, rounds);
    process.stdout.write(`${table(bench, own)}\n\n`);
    results.push(...own);
    if (values.json !== undefined) {
      const report = { runtime: runtime.name, results };
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
