import { dirname, relative, resolve } from "node:path";
import type { Duration } from "@coracle/operator/client";
import type { CheckOptions, CheckReport } from "../testing/check_options.ts";
import { PLAN_KINDS } from "../testing/check/derive_plans.ts";
import { readExamples } from "../testing/check/example_files.ts";
import { shellText } from "../testing/shell_text.ts";
import { startCheckWorkers } from "./check_workers.ts";
import {
  type Command,
  type CommandTerminal,
  type FlagValues,
  suggestion,
  type Terminal,
  UsageError,
} from "./command.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import { listOf, requireOutput, textOf, writeOutput } from "./serving.ts";
import type { Progress } from "../testing/check/check_operator.ts";

/** Kinds of plans with their descriptions, one per line. */
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
    "2: the check could not run, or no plan did, 3: nothing was found, but fewer\n" +
    "plans ran than --require asks for. Kinds of plans:\n" +
    KIND_LINES,
  flags: {
    "examples FILE…": "YAML files of objects and definitions",
    "plans N": "run no more than N plans",
    "budget TIME": "stop after a time (default 10m)",
    "require SHARE":
      "smallest share of the plans that has to run (default 50%)",
    "seed S": "seed of names, UIDs and jitter (default 1)",
    "only KIND…": "kinds of plans",
    "exhaustive": "run all orders of deliveries and crashes of small operators",
    "replay PLAN": "run one plan, as a finding names it",
    "from OLD_FILE": "older build, for plans that upgrade",
    "workers N": "number of processes (default: one for each core)",
    "json FILE": "write the report as JSON; - for standard output",
    "write-test FILE": "write a test for each finding",
    ...EXPORT_FLAG,
  },
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
  terminal: CommandTerminal,
): Promise<number> {
  const path = await findOperatorFile(file);
  const from = textOf(flags, "from");
  const old = from === undefined ? undefined : await findOperatorFile(from);
  for (const name of ["json", "write-test"]) {
    await requireOutput(textOf(flags, name) ?? "-");
  }
  const replay = textOf(flags, "replay");
  const only = listOf(flags, "only");
  for (const name of only) {
    if (Object.hasOwn(PLAN_KINDS, name) || name === "none") continue;
    const kinds = Object.keys(PLAN_KINDS);
    throw new UsageError(
      `Cannot use --only: it must name kinds of plans: received "${name}"${
        suggestion(name, kinds) || `, of ${kinds.join(", ")}`
      }`,
    );
  }
  const required = shareOf(flags);
  const files = listOf(flags, "examples");
  const read = await Promise.all(files.map(readExamples));
  const examples = read.length === 0 ? undefined : read.flat();
  const workers = replay === undefined
    ? countOf(flags, "workers") ?? defaultWorkers()
    : 1;
  const { checkOperator } = await import("../testing/check/check_operator.ts");
  const name = textOf(flags, "export");
  const progress = progressText(terminal);
  const seed = countOf(flags, "seed");
  const found = await checkOperator({
    operator: path,
    from: old,
    export: name,
    examples,
    only: only.length === 0 ? undefined : only,
    replay,
    exhaustive: flags["exhaustive"] === true,
    plans: countOf(flags, "plans"),
    budget: textOf(flags, "budget") as Duration | undefined,
    seed,
    onProgress: progress.show,
    runner: (settings) =>
      startCheckWorkers(workers, {
        ...settings,
        operator: path,
        from: old,
        export: name,
      }),
  }).finally(progress.end);
  const report = withFlags(found, flags);
  const json = textOf(flags, "json");
  if (json === "-") terminal.out(`${JSON.stringify(report, undefined, 2)}\n`);
  else terminal.out(checkedText(report));
  if (json !== undefined && json !== "-") {
    await writeOutput(json, `${JSON.stringify(report, undefined, 2)}\n`);
  }
  const settings = { seed, export: name, examples };
  await writeTest(
    report,
    { operator: path, from: old },
    settings,
    flags,
    terminal,
  );
  const share = replay === undefined
    ? shareRun(report, countOf(flags, "plans"))
    : 1;
  return exitCode(report, { share, required, terminal });
}

/** Exit code of a check; says if too few of its plans ran. */
export function exitCode(
  report: CheckReport,
  given: {
    readonly share: number;
    readonly required: number;
    readonly terminal: CommandTerminal;
  },
): number {
  const isTooSmall = hasRun(report) && given.share < given.required;
  if (isTooSmall) sayCoverage(report, given);
  if (report.findings.length > 0) return 1;
  return hasRun(report) ? isTooSmall ? 3 : 0 : 2;
}

/** Share of `--require`, from 0 to 1. */
function shareOf(flags: FlagValues): number {
  const text = textOf(flags, "require") ?? "50%";
  const [, number] = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text) ?? [];
  if (Number(number) <= 100) return Number(number) / 100;
  throw new UsageError(
    `Cannot use --require: it must be a percentage from 0% to 100%: received "${text}"`,
  );
}

/**
 * Share of the plans that ran: of those of `--plans`, and of the scenarios, as
 * those that did not run have unknown plans.
 */
export function shareRun(
  { plans, coverage }: CheckReport,
  limit: number = Infinity,
): number {
  const { planned, scenarios, notRun = 0, exhaustive } = coverage;
  if (exhaustive !== undefined) return exhaustive.complete ? 1 : 0;
  const wanted = Math.min(planned, limit);
  if (wanted === 0 || scenarios === 0) return 1;
  const share = Math.min(plans / wanted, 1);
  return limit < planned ? share : share * (scenarios - notRun) / scenarios;
}

/** Says, in bold, that most of an operator is unchecked. */
function sayCoverage(
  { plans, coverage }: CheckReport,
  { share, required, terminal }: {
    readonly share: number;
    readonly required: number;
    readonly terminal: CommandTerminal;
  },
): void {
  const { planned, notRun = 0, exhaustive } = coverage;
  const ran = exhaustive === undefined
    ? `Only ${plans} of ${counted(planned, "plan")} ran${
      notRun === 0 ? "" : `, and ${counted(notRun, "scenario")} did not at all`
    }`
    : "Not all schedules ran";
  const text = `${ran}: ${
    percent(share)
  } of the check, where --require asks for ${
    percent(required)
  }. Give a bigger --budget, more --workers or a smaller workload.`;
  terminal.draw(terminal.colors ? `\x1b[1m${text}\x1b[0m\n` : `${text}\n`);
}

function percent(share: number): string {
  return `${Math.floor(share * 1_000) / 10} %`;
}

/** Adds what the plans depend on to the commands that run them again. */
function withFlags(report: CheckReport, flags: FlagValues): CheckReport {
  const given = ["examples", "export", "from"].flatMap((name) => {
    const value = flags[name];
    return value === undefined
      ? []
      : [`--${name} ${shellText(String(value))} `];
  }).join("");
  const findings = report.findings.map((finding) => ({
    ...finding,
    replay: finding.replay.replace("--replay", () => `${given}--replay`),
  }));
  return { ...report, findings };
}

/** Options of the check that a test which replays a plan needs as well. */
type TestSettings = Pick<CheckOptions, "seed" | "export" | "examples">;

/** Files of the operator and of its older build, as a test names them. */
interface OperatorFiles {
  readonly operator: string;
  readonly from?: string | undefined;
}

async function writeTest(
  report: CheckReport,
  { operator, from }: OperatorFiles,
  settings: TestSettings,
  flags: FlagValues,
  terminal: Terminal,
): Promise<void> {
  const file = textOf(flags, "write-test");
  if (file === undefined) return;
  if (report.findings.length === 0) {
    terminal.say(`Nothing was found, so ${file} was not written.\n`);
    return;
  }
  const place = (path: string) => relative(dirname(resolve(file)), path);
  const text = testFileText(report, {
    operator: place(operator),
    from: from === undefined ? undefined : place(from),
  }, settings);
  await writeOutput(file, text);
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

type Finding = CheckReport["findings"][number];

/** Width of the progress bar in characters. */
const BAR = 24;

/** Text of a report, as the command prints it. */
export function checkedText(report: CheckReport): string {
  const { findings, coverage } = report;
  const { scenarios, writes, events, notRun = 0, unsettled = 0 } = coverage;
  const { uncompared = 0, refused = 0 } = coverage;
  const { unanswered, unstable, planned, exhaustive } = coverage;
  const { plans } = report;
  const found = findings.map((one, at) => findingText(one, at + 1)).join("\n");
  const lines = [
    ranText(report),
    `The workload has ${counted(scenarios, "scenario")} with ${
      counted(writes, "write")
    } and ${counted(events, "event")} of the operator.`,
    notRun > 0 &&
    `${
      counted(notRun, "scenario")
    } did not run before half of the time was up; give a bigger --budget.`,
    unsettled > 0 &&
    `${
      counted(unsettled, "scenario")
    } had no plans: the operator does not come to rest in them.`,
    uncompared > 0 &&
    `The states of ${
      counted(uncompared, "scenario")
    } were not compared: no time was left to see which fields are random; give a bigger --budget.`,
    refused > 0 &&
    `${
      counted(refused, "scenario")
    } had a change that is refused, by a webhook of the operator or for one of its parts.`,
    unanswered.length > 0 &&
    `Nothing answered ${unanswered.slice(0, 3).join(", ")}${
      unanswered.length > 3 ? ", …" : ""
    }: the option externals can, in a file beside the operator's such as operator.check.ts.`,
    unstable > 0 &&
    `${
      counted(unstable, "finding")
    } did not show a second time: the operator depends on something that the check does not control.`,
    findings.length > 0
      ? `${counted(findings.length, "finding")}.`
      : hasRun(report)
      ? plans < planned && exhaustive === undefined
        ? `Nothing was found in the ${plans} of ${planned} plans that ran.`
        : "Nothing was found."
      : `No plan ran, so that nothing is known about the operator: give ${
        planned > 0
          ? "a bigger --budget."
          : "--examples with which it writes something."
      }`,
  ].filter((line) => line !== false);
  return `${found === "" ? "" : `${found}\n`}${lines.join("\n")}\n`;
}

/** Text of the plans or schedules that ran. */
function ranText({ plans, findings, coverage }: CheckReport): string {
  const { byKind, planned, pruned, exhaustive } = coverage;
  if (exhaustive !== undefined) {
    return schedulesText(exhaustive, findings.length);
  }
  const kinds = Object.entries(byKind).map(([kind, count]) =>
    `${kind} ${count}`
  );
  const left = planned - plans;
  return `${counted(plans, "plan")} ran${
    kinds.length === 0 ? "" : ` (${kinds.join(", ")})`
  }; ${counted(pruned, "plan")} cannot matter${
    left > 0 ? `; ${left} did not run` : ""
  }.`;
}

/** Whether a check has run any plan or schedule. */
function hasRun({ plans, coverage }: CheckReport): boolean {
  return plans > 0 || coverage.exhaustive !== undefined;
}

function schedulesText(
  { schedules, runs, states, scenarios, leftOut, complete }: NonNullable<
    CheckReport["coverage"]["exhaustive"]
  >,
  findings: number,
): string {
  const count = schedules.toLocaleString("en");
  const where = `of ${counted(scenarios, "scenario")}`;
  const what = !complete
    ? `${count} schedules ${where} were searched before the time was up; give a bigger --budget.`
    : findings > 0
    ? `Not all of the ${count} schedules ${where} converge.`
    : `All ${count} schedules ${where} converge.`;
  const others = leftOut === 0
    ? ""
    : ` ${
      counted(leftOut, "scenario")
    } with more than 8 writes or 2 objects did not run.`;
  return `${what} They took ${counted(runs, "run")} over ${
    counted(states, "state")
  }.${others}`;
}

function findingText(finding: Finding, number: number): string {
  const { title, oracle, disturbance, writes, diff, sequence } = finding;
  const { replay, plans, also } = finding;
  const more = plans > 1 ? ` (and ${counted(plans - 1, "more plan")})` : "";
  const block = (title: string, text: string) =>
    text !== "" && `   ${title}:\n${indented(text, "     ")}`;
  const blocks = [
    `${number}. ${upper(title)}   [${oracle}]`,
    `   When ${disturbance}${more}.`,
    block("Writes", writes.join("\n")),
    block("State, - expected, + found", diff),
    block("Sequence", sequence),
    `   Run it again: ${replay}`,
    also.length > 0 && `   Also shown by: ${also.join(" ")}`,
  ].filter((line) => line !== false);
  return `${blocks.join("\n")}\n`;
}

function indented(text: string, by: string): string {
  return text.split("\n").map((line) => `${by}${line}`.trimEnd()).join("\n");
}

function upper(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Interval of progress lines without a terminal, in milliseconds. */
const PROGRESS_INTERVAL_MS = 10_000;

/** Display of the progress: a bar on a terminal, otherwise occasional lines. */
export function progressText(
  terminal: CommandTerminal,
): { show(progress: Progress): void; end(): void } {
  let shown = "";
  let said = performance.now();
  const erase = () => {
    if (shown !== "" && terminal.colors) terminal.draw("\r\x1b[K");
    shown = "";
  };
  return {
    show({ phase, done, total, findings }) {
      const share = total === 0 ? 1 : done / total;
      const what = {
        reference: "Reference runs",
        plans: "Plans",
        schedules: "Scenarios",
      }[phase];
      const text = `${what} ${done}/${total}, ${counted(findings, "finding")}`;
      if (terminal.colors) {
        const full = Math.round(share * BAR);
        erase();
        shown = `${"█".repeat(full)}${"░".repeat(BAR - full)} ${text}`;
        terminal.say(shown);
      } else if (
        done === total || done % 100 === 0 ||
        performance.now() - said > PROGRESS_INTERVAL_MS
      ) {
        terminal.say(`${text}\n`);
        said = performance.now();
      }
    },
    end: erase,
  };
}

/** Text of a test file that replays each finding. */
export function testFileText(
  { findings }: CheckReport,
  { operator, from }: OperatorFiles,
  settings: TestSettings = {},
): string {
  const lines = Object.entries(settings).filter(([, value]) =>
    value !== undefined
  ).map(([name, value]) =>
    `\n  ${name}: ${
      indented(JSON.stringify(value, undefined, 2), "  ").trim()
    },`
  );
  const urlOf = (path: string) => {
    const url = encodeURI(path.startsWith(".") ? path : `./${path}`)
      .replaceAll("#", "%23").replaceAll("?", "%3F");
    return `new URL(${JSON.stringify(url)}, import.meta.url)`;
  };
  const older = from === undefined ? "" : `\n  from: ${urlOf(from)}.href,`;
  const tests = findings.map(({ title, disturbance, plan, writes }) =>
    [
      `// When ${disturbance}.`,
      ...writes.map((write) => `//   ${write}`),
      `test(${JSON.stringify(upper(title))}, async () => {`,
      "  const { findings } = await checkOperator({",
      "    ...options,",
      `    replay: ${JSON.stringify(plan)},`,
      "  });",
      "  assert.deepEqual(findings.map(({ title }) => title), []);",
      "});",
    ].join("\n")
  );
  return `// Written by coracle check. Each test fails until its finding is mended.
import { checkOperator } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";

const options = {
  operator: ${urlOf(operator)},${older}${lines.join("")}
};

${tests.join("\n\n")}
`;
}
