/**
 * Compares the working tree with another commit: `compare.ts REF [--only NAME]…
 * [--rounds N]`.
 *
 * The benchmarks of the working tree run against the library of both, each
 * subject in fresh processes that alternate, so that other load on the machine
 * slows down both. Rivals are left out.
 *
 * @module
 */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { PROJECT, runCommand } from "../tests/support/child_process.ts";
import { type Bench, loadBench, type Measure } from "./support/bench.ts";
import { comparison, type Pair } from "./support/report.ts";
import { benchNames, runSubject } from "./support/subject_process.ts";
import { commandLine } from "../tests/support/command_line.ts";

const DEFAULT_ROUNDS = 5;
const INSTALL_LIMIT_MS = 10 * 60_000;

async function run(cwd: string, ...command: readonly string[]): Promise<void> {
  const { code, stderr } = await runCommand(command, {
    cwd,
    limit: INSTALL_LIMIT_MS,
  });
  if (code !== 0) {
    throw new Error(
      `Cannot run "${command.join(" ")}": it failed: received ${stderr}`,
    );
  }
}

/** Checks out a commit, with its dependencies and the current benchmarks. */
async function checkOut(ref: string, folder: string): Promise<void> {
  await run(PROJECT, "git", "worktree", "add", "--detach", folder, ref);
  await run(folder, "npm", "ci");
  const bench = join(folder, "bench");
  await rm(bench, { recursive: true, force: true });
  await cp(join(PROJECT, "bench"), bench, { recursive: true });
}

async function compare(
  bench: Bench,
  before: string,
  rounds: number,
): Promise<readonly Pair[]> {
  const pairs: Pair[] = [];
  const prepared = await bench.prepare?.([before, PROJECT]);
  try {
    for (const { name: subject, rival } of bench.subjects) {
      if (rival) continue;
      const measured: { before: Measure[]; after: Measure[] } = {
        before: [],
        after: [],
      };
      for (let round = 0; round < rounds; round++) {
        const sides = round % 2 === 0
          ? (["before", "after"] as const)
          : (["after", "before"] as const);
        for (const side of sides) {
          const checkout = side === "before" ? before : PROJECT;
          measured[side].push(
            ...await runSubject({
              bench: bench.name,
              subject,
              prepared,
              checkout,
            }),
          );
        }
      }
      pairs.push({ subject, ...measured });
    }
  } finally {
    await prepared?.stop();
  }
  return pairs;
}

async function main(): Promise<void> {
  const { values, positionals: [ref], integer } = commandLine(
    "compare",
    {
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string" },
    },
    "REF",
  );
  if (ref === undefined) {
    throw new TypeError(
      "Cannot compare: name what to compare with, such as HEAD~1: received nothing",
    );
  }
  const names = benchNames(values.only);
  const given = integer("rounds", 1);
  // Checked first, before anything is created that would have to be removed.
  await run(PROJECT, "git", "rev-parse", "--verify", `${ref}^{commit}`);
  const folder = await mkdtemp(join(tmpdir(), "coracle-compare-"));
  const before = join(folder, "before");
  try {
    await checkOut(ref, before);
    for (const name of names) {
      const bench = await loadBench(name);
      const rounds = given ?? bench.rounds ?? DEFAULT_ROUNDS;
      const pairs = await compare(bench, before, rounds);
      process.stdout.write(`${comparison(bench, pairs)}\n\n`);
    }
  } finally {
    await run(PROJECT, "git", "worktree", "remove", "--force", before);
    await rm(folder, { recursive: true, force: true });
  }
}

await main();
