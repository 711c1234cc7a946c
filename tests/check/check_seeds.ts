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
 * still fails and the command that runs it again. The last line says how many seeds
 * have run and which have failed, also when a signal or `--stop` ends the command
 * early. The exit code is 1 then, and if a seed has failed.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
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
  progress: { type: "string", default: "60" },
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
/** Real time after which a seed that has not ended is given up. */
const MAX_SEED_MS = 120_000;
/** Real time between two lines about the progress. */
const progressMs = positive("progress") * 1_000;

/** Whether a seed is still to be run. */
function isDue(seed: number): boolean {
  return end === undefined ? seed < from + count : realNow() < end;
}

/** Runs every n-th seed, and reports each before and after. */
async function work(first: number): Promise<void> {
  const exit = process.exit.bind(process);
  // Nobody reads any more: the supervisor was killed.
  process.stdout.on("error", () => exit(1));
  for (let seed = first; isDue(seed); seed += workers) {
    print(`begin ${seed}`);
    const isHeld = await judge(planOf(seed), `Seed ${seed}`);
    print(`end ${isHeld ? "held" : "failed"} ${process.cpuUsage().user}`);
  }
}

/** Processes that run the seeds, and what they have reported so far. */
class Supervisor {
  readonly #start = realNow();
  readonly #children: Set<ChildProcess> = new Set();
  readonly #failures: string[] = [];
  #ran = 0;
  #cpu = 0;
  /** Reason why the run of seeds ends early. */
  #cut: string | undefined;

  async run(): Promise<boolean> {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.once(signal, () => this.#cutOff(signal));
    }
    const progress = setInterval(() => print(this.#summary), progressMs);
    await Promise.all(
      Array.from({ length: workers }, (_, index) => this.#work(from + index)),
    );
    clearInterval(progress);
    const failures = this.#failures.length > 0
      ? `: ${this.#failures.join(", ")}`
      : "";
    const cut = this.#cut === undefined ? "" : `; cut off by ${this.#cut}`;
    print(`${this.#summary}${failures}${cut}`);
    return this.#failures.length === 0 && this.#cut === undefined &&
      this.#ran > 0;
  }

  get #summary(): string {
    const seconds = (realNow() - this.#start) / 1_000;
    const each = this.#cpu / 1_000 / Math.max(this.#ran, 1);
    return `${this.#ran} seeds in ${seconds.toFixed(1)} s, ${
      each.toFixed(0)
    } ms of CPU each: ${this.#failures.length} failed`;
  }

  #cutOff(why: string): void {
    this.#cut ??= why;
    for (const child of this.#children) child.kill("SIGKILL");
  }

  #failed(seed: number, how = ""): void {
    this.#failures.push(`${seed}${how}`);
    if (this.#failures.length >= stop) this.#cutOff(`--stop ${stop}`);
  }

  /** Runs every n-th seed; a seed that ends its process is a failure. */
  async #work(first: number): Promise<void> {
    let next = first;
    while (this.#cut === undefined && isDue(next)) {
      const last = await this.#runChild(next);
      if (last === undefined) return;
      next = last + workers;
    }
  }

  /**
   * Runs a process.
   *
   * @returns The seed at which it was lost; undefined if it has run them all.
   */
  async #runChild(first: number): Promise<number | undefined> {
    const left = end === undefined ? [] : [
      `--minutes=${Math.max(end - realNow(), 1) / 60_000}`,
    ];
    const child = spawn(process.execPath, [
      ...process.execArgv,
      fileURLToPath(import.meta.url),
      ...process.argv.slice(2),
      ...left,
      `--workers=${workers}`,
      `--worker=${first}`,
    ], { stdio: ["ignore", "pipe", "inherit"] });
    this.#children.add(child);
    const ended = new Promise<string>((resolve) => {
      child.on("exit", (code, signal) => resolve(signal ?? `code ${code}`));
    });
    let running: number | undefined = first;
    let cpu = 0;
    let limit: ReturnType<typeof setTimeout> | undefined;
    for await (const line of createInterface({ input: child.stdout })) {
      const [, begun, held, used] =
        /^(?:begin (\d+)|end (held|failed) (\d+))$/.exec(line) ?? [];
      if (begun !== undefined) {
        running = Number(begun);
        limit = setTimeout(() => child.kill("SIGKILL"), MAX_SEED_MS);
      } else if (held !== undefined) {
        clearTimeout(limit);
        this.#ran++;
        this.#cpu += Number(used) - cpu;
        cpu = Number(used);
        if (held === "failed") this.#failed(running as number);
        running = undefined;
      } else print(line);
    }
    clearTimeout(limit);
    const how = await ended;
    this.#children.delete(child);
    if (
      this.#cut !== undefined || (running === undefined && how === "code 0")
    ) {
      return undefined;
    }
    if (running === undefined) throw new Error(`A process ended by ${how}`);
    print(
      `Seed ${running} ended its process by ${how}\n  again: ${COMMAND} --seed ${running}`,
    );
    this.#ran++;
    this.#failed(running, ` (${how})`);
    return running;
  }
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
} else process.exitCode = await new Supervisor().run() ? 0 : 1;
