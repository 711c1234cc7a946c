import { writeFile } from "node:fs/promises";
import { dirname, relative, resolve } from "node:path";
import type { Duration } from "../core/api/duration.ts";
import type { CheckReport } from "../testing/check_options.ts";
import { PLAN_KINDS } from "../testing/check/derive_plans.ts";
import { readExamples } from "../testing/check/example_files.ts";
import {
  checkedText,
  hasRun,
  progressText,
  testFileText,
} from "./check_report.ts";
import { startCheckWorkers } from "./check_workers.ts";
import {
  type Command,
  type FlagValues,
  suggestion,
  type Terminal,
  UsageError,
} from "./command.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import { textOf } from "./serving.ts";

/** Kinds of plans with their descriptions, one a line. */
const KIND_LINES = Object.entries(PLAN_KINDS).map(([name, text]) =>
  `  ${name.padEnd(9)} ${text}`
).join("\n");

export const checkCommand: Command = {
  name: "check",
  operands: "FILE",
  count: [1, 1],
  summary: "crash, starve and mislead an operator in every way that matters",
  description:
    "Runs the operator of a file on an embedded API server and a virtual clock:\n" +
    "first undisturbed, then once for each plan, and compares. Objects are taken\n" +
    "from the YAML file of the same name, else made from the schemas of its kinds.\n" +
    "OPERATOR.check.ts beside OPERATOR.ts can export options of checkOperator, such\n" +
    "as externals, which answers requests outside of the cluster. Nothing outside\n" +
    "this machine is reached. Exit code 0: nothing was found, 1: findings,\n" +
    "2: the check could not run, or no plan did. Kinds of plans:\n" +
    KIND_LINES,
  flags: [
    {
      name: "examples",
      value: "FILES",
      help: "YAML files of objects and definitions, separated by commas",
    },
    { name: "plans", value: "N", help: "run no more than N plans" },
    { name: "budget", value: "TIME", help: "stop after a time (default 10m)" },
    {
      name: "seed",
      value: "S",
      help: "seed of names, UIDs and jitter (default 1)",
    },
    {
      name: "only",
      value: "KINDS",
      help: "kinds of plans, separated by commas",
    },
    {
      name: "exhaustive",
      help: "run all orders of deliveries and crashes of small operators",
    },
    {
      name: "replay",
      value: "PLAN",
      help: "run one plan, as a finding names it",
    },
    {
      name: "from",
      value: "OLD_FILE",
      help: "older build, for plans that upgrade",
    },
    {
      name: "workers",
      value: "N",
      help: "number of processes (default: one for each core)",
    },
    {
      name: "json",
      value: "FILE",
      help: "write the report as JSON; - for standard output",
    },
    {
      name: "write-test",
      value: "FILE",
      help: "write a test for each finding",
    },
    EXPORT_FLAG,
  ],
  async run({ flags, operands: [file = ""], terminal }) {
    try {
      return await check(file, flags, terminal);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      const { message, stack } = error as Error;
      terminal.say(
        `${message?.startsWith("Cannot ") ? message : stack ?? error}\n`,
      );
      return 2;
    }
  },
};

async function check(
  file: string,
  flags: FlagValues,
  terminal: Terminal,
): Promise<number> {
  const path = await findOperatorFile(file);
  const from = textOf(flags, "from");
  const old = from === undefined ? undefined : await findOperatorFile(from);
  const replay = textOf(flags, "replay");
  const only = textOf(flags, "only")?.split(",");
  for (const name of only ?? []) {
    if (name in PLAN_KINDS || name === "none") continue;
    throw new UsageError(
      `Cannot use --only: it must name kinds of plans: received "${name}"${
        suggestion(name, Object.keys(PLAN_KINDS))
      }`,
    );
  }
  const files = textOf(flags, "examples")?.split(",") ?? [];
  const read = await Promise.all(files.map(readExamples));
  const examples = read.length === 0 ? undefined : read.flat();
  const workers = replay === undefined
    ? countOf(flags, "workers") ?? defaultWorkers()
    : 1;
  const { checkOperator } = await import("../testing/check/check_operator.ts");
  const name = textOf(flags, EXPORT_FLAG.name);
  const progress = progressText(terminal);
  const report = await checkOperator({
    operator: path,
    from: old,
    export: name,
    examples,
    only,
    replay,
    exhaustive: flags["exhaustive"] === true,
    plans: countOf(flags, "plans"),
    budget: textOf(flags, "budget") as Duration | undefined,
    seed: countOf(flags, "seed"),
    onProgress: progress.show,
    runner: (settings) =>
      startCheckWorkers(workers, {
        ...settings,
        operator: path,
        from: old,
        export: name,
      }),
  }).finally(progress.end);
  const json = textOf(flags, "json");
  if (json === "-") terminal.out(`${JSON.stringify(report, undefined, 2)}\n`);
  else terminal.out(checkedText(report));
  if (json !== undefined && json !== "-") {
    await writeFile(json, `${JSON.stringify(report, undefined, 2)}\n`);
  }
  await writeTest(report, path, textOf(flags, "write-test"), terminal);
  if (report.findings.length > 0) return 1;
  return hasRun(report) ? 0 : 2;
}

async function writeTest(
  report: CheckReport,
  path: string,
  file: string | undefined,
  terminal: Terminal,
): Promise<void> {
  if (file === undefined) return;
  if (report.findings.length === 0) {
    terminal.say(`Nothing was found, so ${file} was not written.\n`);
    return;
  }
  const specifier = relative(dirname(resolve(file)), path);
  const text = testFileText(report, specifier);
  await writeFile(file, text);
  terminal.say(`Wrote ${file}.\n`);
}

function countOf(flags: FlagValues, name: string): number | undefined {
  const text = textOf(flags, name);
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(
    `Cannot use --${name}: it must be a positive integer: received "${text}"`,
  );
}

function defaultWorkers(): number {
  return Math.max(1, Math.min(navigator.hardwareConcurrency ?? 1, 16));
}
