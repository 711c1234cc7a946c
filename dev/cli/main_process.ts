import { spawn } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { DevRun } from "./dev_run.ts";
import { UsageError } from "./command.ts";
import { type DescribeOptions, findOperatorFile } from "./operator_module.ts";
import {
  checkoutFlags,
  programFile,
  RUNTIME,
  runtimeFlags,
} from "./runtime.ts";
import { isRunning, temporaryFolder } from "./serving.ts";

/** Task of a process whose main module is an operator file. */
export type MainTask =
  | {
    readonly task: "describe";
    readonly file: string;
    readonly options: DescribeOptions;
  }
  | {
    readonly task: "dev";
    readonly file: string;
    readonly run: DevRun;
    /**
     * Files of the framework to load before it is the turn of the process; undefined
     * if it runs the file at once.
     */
    readonly preload?: readonly string[] | undefined;
  };

/** Environment variable with the {@linkcode MainTask} of a process, as JSON. */
const TASK_VARIABLE = "CORACLE_MAIN_TASK";
/** Time limit, in milliseconds, for loading a file that is only described. */
const DESCRIBE_TIMEOUT_MS = 30_000;

/** Interval of checks that the command still runs, in milliseconds. */
const COMMAND_CHECK_MS = 500;

/**
 * Task of this process; undefined if its main module is another file. The
 * process ends when the command does not run any longer.
 */
export function mainTask():
  | MainTask & { readonly answer?: string | undefined }
  | undefined {
  const text = process.env[TASK_VARIABLE];
  if (text === undefined) return undefined;
  const { command, ...task } = JSON.parse(text);
  // Processes that the file starts inherit the variable.
  if (resolve(task.file) !== process.argv[1]) return undefined;
  endWith(command);
  return task;
}

/** Ends this process when a command ends. */
function endWith(command: number): void {
  setInterval(() => {
    // Nothing is left to stop in order: the API server has ended, too.
    if (!isRunning(command)) process.kill(process.pid, "SIGKILL");
  }, COMMAND_CHECK_MS).unref();
}

/** Command that runs a file as the main module, with `main_file.ts` loaded first. */
async function mainCommand(file: string): Promise<readonly string[]> {
  const path = await findOperatorFile(file);
  const first = programFile("main_file");
  return [
    process.execPath,
    ...runtimeFlags(),
    ...checkoutFlags(),
    RUNTIME === "node" ? "--import" : "--preload",
    RUNTIME === "bun" ? first : pathToFileURL(first).href,
    path,
  ];
}

export async function startMain(
  task: MainTask & { readonly answer?: string | undefined },
): Promise<ReturnType<typeof spawn>> {
  const [program = "", ...args] = await mainCommand(task.file);
  const isSpare = task.task === "dev" && task.preload !== undefined;
  return spawn(program, args, {
    stdio: ["ignore", "inherit", "inherit", ...isSpare ? ["ipc" as const] : []],
    env: {
      ...process.env,
      [TASK_VARIABLE]: JSON.stringify({ ...task, command: process.pid }),
    },
  });
}

/**
 * Runs a task in a process whose main module is the file.
 *
 * @throws {UsageError} If the task refuses the file.
 * @throws {Error} If the process ends without an answer.
 */
export async function runAsMain<T>(task: MainTask): Promise<T> {
  const folder = await temporaryFolder();
  const answer = join(folder, "answer.json");
  try {
    const child = await startMain({ ...task, answer });
    const timer = setTimeout(() => child.kill("SIGKILL"), DESCRIBE_TIMEOUT_MS);
    const signal = await new Promise((ended, failed) => {
      child.once("exit", (_code, signal) => ended(signal));
      child.once("error", failed);
    }).finally(() => clearTimeout(timer));
    const text = await readFile(answer, "utf8").catch(() => undefined);
    if (text !== undefined) {
      const description = JSON.parse(text);
      if (description.refused === undefined) return description;
      throw new UsageError(description.refused);
    }
    throw new Error(
      `Cannot read ${task.file}: ${
        signal === "SIGKILL"
          ? `as a program it created no operator within ${
            DESCRIBE_TIMEOUT_MS / 1_000
          } s`
          : "as a program it failed"
      }; a function "operator" that returns the operator is called instead, if the file exports one`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
