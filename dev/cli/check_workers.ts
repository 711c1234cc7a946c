/**
 * Processes that run the plans of a check, each in one simulated cluster at a
 * time.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import type { Runner } from "../testing/check/check_operator.ts";
import type {
  Job,
  JobResult,
  SessionOptions,
} from "../testing/check/check_session.ts";
import { programFile, runtimeFlags } from "./runtime.ts";

/** Initial settings of a worker process; plain data. */
export type WorkerSettings =
  & Omit<SessionOptions, "operator" | "kinds" | "invariants" | "externals">
  & { readonly operator: string };

/** Answer of a worker; plain data. */
export type WorkerAnswer =
  | { readonly result: JobResult }
  | { readonly error: string };

/** Prefix of answers on standard output, where operators may print as well. */
export const ANSWER_MARK = "\u0001coracle-check ";
/** Number of jobs after which a worker is replaced: modules are never unloaded. */
const MAX_JOBS = 400;
/** Time limit of one job, in milliseconds. */
const JOB_LIMIT_MS = 120_000;

/** Starts worker processes, each on its first use. */
export function startCheckWorkers(
  count: number,
  settings: WorkerSettings,
): Promise<Runner> {
  const idle: CheckWorker[] = [];
  const all = new Set<CheckWorker>();
  return Promise.resolve({
    size: count,
    async run(job: Job) {
      let worker = idle.pop();
      if (worker === undefined || worker.jobs >= MAX_JOBS) {
        if (worker !== undefined) await worker.stop();
        worker = new CheckWorker(settings);
        all.add(worker);
      }
      try {
        return await worker.run(job);
      } finally {
        if (worker.isAlive) idle.push(worker);
        else all.delete(worker);
      }
    },
    async close() {
      await Promise.all([...all].map((worker) => worker.stop()));
    },
  });
}

/** A worker process; it does one job at a time. */
class CheckWorker {
  readonly #child: ChildProcess;
  #text = "";
  #errors = "";
  #answer: PromiseWithResolvers<WorkerAnswer> | undefined;
  jobs = 0;
  isAlive = true;

  constructor(settings: WorkerSettings) {
    const file = programFile("check_worker");
    this.#child = spawn(process.execPath, [...runtimeFlags(), file], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    const { stdout, stderr, stdin } = this.#child;
    stdout?.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-4_000);
    });
    stdin?.on("error", () => {}); // It has ended; its exit is reported.
    this.#child.on("error", (error) => this.#ended(String(error)));
    this.#child.on(
      "close",
      (code, signal) => this.#ended(signal ?? `exit code ${code}`),
    );
    this.#send(settings);
  }

  async run(job: Job): Promise<JobResult> {
    this.jobs++;
    const answer = Promise.withResolvers<WorkerAnswer>();
    this.#answer = answer;
    if (!this.isAlive) this.#ended("it has ended before");
    this.#send(job);
    const limit = "limit" in job ? job.limit : 0;
    const longest = JOB_LIMIT_MS + limit;
    const timer = setTimeout(() => {
      this.#child.kill("SIGKILL");
      this.#ended(
        `it took longer than ${
          Math.round(longest / 1_000)
        } s; what the operator loads or runs in its own process, such as a database, takes real time in every run, so replace it by a fake while the check runs`,
      );
    }, longest);
    try {
      const given = await answer.promise;
      if ("error" in given) throw new Error(given.error);
      return given.result;
    } finally {
      clearTimeout(timer);
      this.#answer = undefined;
    }
  }

  async stop(): Promise<void> {
    if (!this.isAlive) return;
    const closed = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.kill("SIGKILL");
    await closed;
  }

  #send(value: unknown): void {
    this.#child.stdin?.write(`${JSON.stringify(value)}\n`);
  }

  #read(text: string): void {
    this.#text += text;
    const lines = this.#text.split("\n");
    this.#text = lines.pop() ?? "";
    for (const line of lines) {
      const at = line.indexOf(ANSWER_MARK);
      if (at < 0) continue;
      this.#answer?.resolve(JSON.parse(line.slice(at + ANSWER_MARK.length)));
    }
  }

  #ended(why: string): void {
    this.isAlive = false;
    this.#answer?.reject(
      new Error(
        `Cannot run a plan: the process of the operator ended (${why})${
          this.#errors === "" ? "" : `, having written:\n${this.#errors}`
        }`,
      ),
    );
  }
}
