/**
 * Runs the benchmarks: `run.ts [--only NAME]… [--rounds N] [--json FILE]`.
 *
 * Every subject runs in a fresh process, by turns with its rivals, in rounds
 * whose order is turned round each time; told are the medians and the spread.
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
  type Subject,
} from "./support/bench.ts";
import { buildGoRivals } from "./support/go_rivals.ts";
import { type Result, resultsOf, table } from "./support/report.ts";
import { currentRuntime, machine } from "./support/runtime.ts";
import { benchNames, runSubject } from "./support/subject_process.ts";

const DEFAULT_ROUNDS = 5;

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
  const measures = new Map<string, (readonly Measure[])[]>(
    here.map(({ name }) => [name, []]),
  );
  const prepared = await bench.prepare?.();
  if (prepared?.note !== undefined) {
    process.stderr.write(`${bench.name}: ${prepared.note}\n`);
  }
  try {
    for (let round = 0; round < rounds; round++) {
      const subjects = round % 2 === 0 ? here : here.toReversed();
      for (const { name: subject, rounds: most = Infinity } of subjects) {
        if (round >= most) continue;
        const { name } = bench;
        const told = await runSubject({ bench: name, subject, prepared });
        measures.get(subject)?.push(told);
      }
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
  { only, rounds }: { readonly only: string[]; readonly rounds?: string },
): string {
  const options = only.map((name) => `--only ${name}`);
  if (rounds !== undefined) options.push(`--rounds ${rounds}`);
  return ["npm run bench", ...options.length > 0 ? ["--"] : [], ...options]
    .join(" ");
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string" },
      json: { type: "string" },
    },
  });
  const command = commandText(values);
  const results: Result[] = [];
  for (const name of benchNames(values.only)) {
    const bench = await loadBench(name);
    const rounds = Number(values.rounds ?? bench.rounds ?? DEFAULT_ROUNDS);
    const own = await runBench(bench, rounds);
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
