/**
 * Runs generated operators in the deterministic world and judges each run by the
 * invariants of the framework:
 *
 * ```sh
 * npm run check:seeds -- --seeds 10000
 * npm run check:seeds -- --minutes 1440 --from 10000
 * npm run check:seeds -- --seed 58
 * ```
 *
 * A seed that fails is printed with what did not hold, the smallest plan that
 * still fails and the command that runs it again. The exit code is 1 if one does.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { runSeed } from "./invariants/run_seed.ts";
import { planOf, type SeedPlan } from "./invariants/seed_plan.ts";
import { smallestPlan } from "./invariants/smallest_plan.ts";
import { commandLine } from "../support/command_line.ts";

const { values, positive, integer } = commandLine("check seeds", {
  seeds: { type: "string", default: "1000" },
  from: { type: "string", default: "0" },
  minutes: { type: "string" },
  seed: { type: "string" },
  plan: { type: "string" },
  workers: { type: "string", default: String(availableParallelism()) },
  worker: { type: "string" },
  stop: { type: "string", default: "10" },
});
const COMMAND = "npm run check:seeds --";
const realNow = performance.now.bind(performance);

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Runs one plan; prints what did not hold. */
async function judge(plan: SeedPlan, name: string): Promise<boolean> {
  const violations = await runSeed(plan);
  if (violations.length === 0) return true;
  const lines = violations.slice(0, 5).map(({ invariant, detail }) =>
    `  ${invariant}: ${detail.slice(0, 1_000)}`
  );
  const smallest = await smallestPlan(plan, violations);
  print(
    `${name} failed:\n${
      lines.join("\n")
    }\n  again: ${COMMAND} --seed ${plan.seed}\n  smallest plan: ${COMMAND} --plan '${
      JSON.stringify(smallest)
    }'`,
  );
  return false;
}

const from = integer("from");
const count = integer("seeds", 1);
const workers = integer("workers", 1);
const stop = integer("stop", 1);
const minutes = positive("minutes");
const end = minutes && realNow() + minutes * 60_000;

/** Runs every n-th seed. */
async function work(first: number): Promise<void> {
  let failed = 0;
  let ran = 0;
  const isDue = (seed: number) =>
    end === undefined ? seed < from + count : realNow() < end;
  for (let seed = from + first; isDue(seed); seed += workers) {
    ran++;
    if (!await judge(planOf(seed), `Seed ${seed}`)) failed++;
    if (failed >= stop) break;
  }
  print(`done ${ran} ${failed} ${process.cpuUsage().user}`);
}

async function supervise(): Promise<boolean> {
  const start = realNow();
  let [ran, failed, cpu] = [0, 0, 0];
  const file = fileURLToPath(import.meta.url);
  let crashed = false;
  await Promise.all(Array.from({ length: workers }, async (_, worker) => {
    const child = spawn(process.execPath, [
      ...process.execArgv,
      file,
      ...process.argv.slice(2),
      `--workers=${workers}`,
      `--worker=${worker}`,
    ], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise<number | null>((resolve) =>
      child.on("exit", resolve)
    );
    for await (const line of createInterface({ input: child.stdout })) {
      const [, a, b, c] = /^done (\d+) (\d+) (\d+)$/.exec(line) ?? [];
      if (a === undefined) {
        print(line);
        continue;
      }
      ran += Number(a);
      failed += Number(b);
      cpu += Number(c);
    }
    if (await ended !== 0) crashed = true;
  }));
  const seconds = (realNow() - start) / 1_000;
  print(
    `${ran} seeds in ${seconds.toFixed(1)} s, ${
      (cpu / 1_000 / Math.max(ran, 1)).toFixed(0)
    } ms of CPU each: ${failed} failed`,
  );
  return failed === 0 && !crashed && ran > 0;
}

const worker = integer("worker");
const seed = integer("seed");
if (worker !== undefined) await work(worker);
else if (values.plan !== undefined) {
  const plan = JSON.parse(values.plan) as SeedPlan;
  process.exitCode = await judge(plan, "The plan") ? 0 : 1;
} else if (seed !== undefined) {
  const held = await judge(planOf(seed), `Seed ${seed}`);
  if (held) print(`Seed ${seed} holds`);
  process.exitCode = held ? 0 : 1;
} else process.exitCode = await supervise() ? 0 : 1;
