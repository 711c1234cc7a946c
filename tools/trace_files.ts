/**
 * Counts the source files that one watch event with its run executes, and those
 * that one `ctx.apply` adds: the code that a reader has to follow.
 *
 * The operator runs in this process and is warm; the API server and the client
 * that changes objects run in others. V8 counts each call of a function between
 * two reads of its precise coverage. A file counts when it is executed in most
 * rounds, so that a timer that happens to fire in one does not matter.
 *
 * `npm run trace:files` prints both lists, `npm run trace:files -- --json` the
 * same as JSON.
 *
 * @module
 */

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";
import { ConfigMap } from "../core/kinds/mod.ts";
import { Client, defineKind, Operator, silentLogger } from "../mod.ts";
import { commandLine } from "../tests/support/command_line.ts";

const PROJECT = new URL("..", import.meta.url).href;
const SELF = fileURLToPath(import.meta.url);
/** Runs before the first measurement, of each kind. */
const WARM_UP_RUNS = 50;
/** Measurements; a file counts when more than half of them have it. */
const ROUNDS = 9;
/** Milliseconds without work that end a measurement. */
const QUIET_MS = 300;
/** Milliseconds until a run or a process that does not answer is an error. */
const LIMIT_MS = 30_000;

const Trace = defineKind({
  group: "tools.coracle.dev",
  version: "v1",
  kind: "Trace",
  spec: z.object({ value: z.number(), apply: z.boolean() }),
});

/** Files by what executes them, from the root of the project. */
interface TracedFiles {
  /** Executed by a watch event and a run that does nothing. */
  readonly event: readonly string[];
  /** Executed in addition when the run calls `ctx.apply` once. */
  readonly apply: readonly string[];
}

/** Fails when something does not happen in time. */
async function within<T>(what: string, work: Promise<T>): Promise<T> {
  const late = sleep(LIMIT_MS, undefined, { ref: false }).then(() => {
    throw new Error(`Cannot trace files: not within ${LIMIT_MS} ms: ${what}`);
  });
  return await Promise.race([work, late]);
}

/** Starts the embedded API server in a process of its own. */
async function startServer(kubeconfig: string): Promise<ChildProcess> {
  const bin = fileURLToPath(new URL("dev/cli/bin.ts", PROJECT));
  const server = spawn(process.execPath, [
    ...process.execArgv,
    bin,
    "apiserver",
    "--port=0",
    `--kubeconfig=${kubeconfig}`,
  ], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await within("the API server is ready", once(server.stdout, "data"));
  } catch (error) {
    server.kill();
    throw error;
  }
  return server;
}

/** The other process: changes the object as its parent asks. */
async function write(kubeconfig: string): Promise<void> {
  const client = await Client.load({ kubeconfig });
  let value = 0;
  process.on("message", async (apply: boolean) => {
    value++;
    await client.apply(Trace, {
      metadata: { name: "traced", namespace: "default" },
      spec: { value, apply },
    }, { force: true });
  });
  process.on("disconnect", () => process.exit());
  process.send?.("ready");
}

/** The operator, and the coverage of its process. */
class Tracer {
  readonly #session = new Session();
  readonly #operator: Operator;
  readonly #writer: ChildProcess;
  #ran: () => void = () => {};

  constructor(client: Client, writer: ChildProcess) {
    this.#writer = writer;
    this.#operator = new Operator({ client, logger: silentLogger });
    this.#operator.register(Trace, {
      reconcile: async (trace, ctx) => {
        if (trace.spec.apply) {
          await ctx.apply(ConfigMap, {
            metadata: { name: trace.metadata.name },
            data: { value: String(trace.spec.value) },
          });
        }
        this.#ran();
      },
    }, { install: true });
  }

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await within("the operator has started", this.#operator.start());
  }

  async stop(): Promise<void> {
    this.#session.disconnect();
    await this.#operator.stop();
  }

  /** Lets the other process change the object, and waits for the run. */
  async run(apply: boolean): Promise<void> {
    const ran = new Promise<void>((resolve) => this.#ran = resolve);
    this.#writer.send(apply);
    await within("a run after a change", ran);
  }

  /** Files that a change with its run executes in most of the rounds. */
  async trace(apply: boolean): Promise<readonly string[]> {
    for (let run = 0; run < WARM_UP_RUNS; run++) await this.run(apply);
    await this.#session.post("Profiler.startPreciseCoverage", {
      callCount: true,
      detailed: false,
    });
    const rounds = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(QUIET_MS);
      await this.#executedFiles();
      await this.run(apply);
      await sleep(QUIET_MS);
      for (const file of await this.#executedFiles()) {
        rounds.set(file, (rounds.get(file) ?? 0) + 1);
      }
    }
    await this.#session.post("Profiler.stopPreciseCoverage");
    return [...rounds].filter(([, count]) => count > ROUNDS / 2)
      .map(([file]) => file).toSorted();
  }

  /** Files of the package that were executed since the last call. */
  async #executedFiles(): Promise<readonly string[]> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ url, functions }) =>
        url.startsWith(PROJECT) && !url.includes("/node_modules/") &&
        url !== pathToFileURL(SELF).href &&
        functions.some(({ ranges }) => ranges.some(({ count }) => count > 0))
      )
      .map(({ url }) => decodeURI(url.slice(PROJECT.length)));
  }
}

async function tracedFiles(): Promise<TracedFiles> {
  const folder = mkdtempSync(join(tmpdir(), "coracle-trace-"));
  const kubeconfig = join(folder, "kubeconfig");
  const children: ChildProcess[] = [];
  const end = () => {
    for (const child of children) child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", end);
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => process.exit(1));
  }
  children.push(await startServer(kubeconfig));
  const client = await Client.load({ kubeconfig });
  const writer = fork(SELF, ["--writer", kubeconfig]);
  children.push(writer);
  await within("the writing process is ready", once(writer, "message"));
  const tracer = new Tracer(client, writer);
  await tracer.start();
  // The first run creates the ConfigMap.
  await tracer.run(true);
  const event = await tracer.trace(false);
  const both = await tracer.trace(true);
  await tracer.stop();
  await client.close();
  end();
  return { event, apply: both.filter((file) => !event.includes(file)) };
}

function print({ event, apply }: TracedFiles): void {
  const lines = [
    `${event.length} files: a watch event with its run`,
    ...event.map((file) => `  ${file}`),
    `${apply.length} files more: one ctx.apply`,
    ...apply.map((file) => `  ${file}`),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

const { values } = commandLine("trace files", {
  json: { type: "boolean" },
  writer: { type: "string" },
});
if (values.writer !== undefined) await write(values.writer);
else {
  const files = await tracedFiles();
  if (values.json) {
    process.stdout.write(`${JSON.stringify(files, null, 2)}\n`);
  } else print(files);
}
