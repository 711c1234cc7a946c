import type { Progress } from "../testing/check/check_operator.ts";
import type { CheckReport } from "../testing/check_options.ts";
import type { Terminal } from "./command.ts";

type Finding = CheckReport["findings"][number];

/** Width of the progress bar in characters. */
const BAR = 24;

/** Text of a report, as the command prints it. */
export function checkedText(report: CheckReport): string {
  const { plans, findings, coverage } = report;
  const found = findings.map((one, at) => findingText(one, at + 1)).join("\n");
  const byKind = Object.entries(coverage.byKind).map(([kind, count]) =>
    `${kind} ${count}`
  ).join(", ");
  const left = coverage.planned - plans;
  const { exhaustive } = coverage;
  const lines = [
    exhaustive !== undefined
      ? schedulesText(exhaustive, findings.length)
      : `${counted(plans, "plan")} ran${byKind === "" ? "" : ` (${byKind})`}; ${
        counted(coverage.pruned, "plan")
      } cannot matter${left > 0 ? `; ${left} did not run` : ""}.`,
    `The workload has ${counted(coverage.scenarios, "scenario")} with ${
      counted(coverage.writes, "write")
    } and ${counted(coverage.events, "event")} of the operator.`,
    ...(coverage.notRun
      ? [
        `${
          counted(coverage.notRun, "scenario")
        } did not run before half of the time was up; give a bigger --budget.`,
      ]
      : []),
    ...(coverage.unsettled
      ? [
        `${
          counted(coverage.unsettled, "scenario")
        } had no plans: the operator does not come to rest in them.`,
      ]
      : []),
    ...(coverage.unanswered.length > 0
      ? [
        `Nothing answered ${coverage.unanswered.slice(0, 3).join(", ")}${
          coverage.unanswered.length > 3 ? ", …" : ""
        }: the option externals can, in a file beside the operator's such as operator.check.ts.`,
      ]
      : []),
    ...(coverage.unstable > 0
      ? [
        `${
          counted(coverage.unstable, "finding")
        } did not show a second time: the operator depends on something that the check does not control.`,
      ]
      : []),
    findings.length > 0
      ? `${counted(findings.length, "finding")}.`
      : hasRun(report)
      ? "Nothing was found."
      : `No plan ran, so that nothing is known about the operator: ${
        coverage.planned > 0
          ? "give a bigger --budget."
          : "give --examples with which it writes something."
      }`,
  ];
  return `${found === "" ? "" : `${found}\n`}${lines.join("\n")}\n`;
}

/** Whether a check has disturbed the operator at all. */
export function hasRun({ plans, coverage }: CheckReport): boolean {
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
  const blocks = [
    `${number}. ${upper(title)}   [${oracle}]`,
    `   When ${disturbance}${more}.`,
    ...(writes.length === 0
      ? []
      : ["   Writes:", indented(writes.join("\n"), "     ")]),
    ...(diff === ""
      ? []
      : ["   State, - expected, + found:", indented(diff, "     ")]),
    ...(sequence === "" ? [] : ["   Sequence:", indented(sequence, "     ")]),
    `   Run it again: ${replay}`,
    ...(also.length === 0 ? [] : [`   Also shown by: ${also.join(" ")}`]),
  ];
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

/** Longest silence without a terminal, in milliseconds, while runs end. */
const PROGRESS_INTERVAL_MS = 10_000;

/** Progress bar on a terminal; a line now and then elsewhere. */
export function progressText(
  terminal: Terminal,
): { show(progress: Progress): void; end(): void } {
  let shown = "";
  let said = performance.now();
  const erase = () => {
    if (shown !== "" && terminal.colors) terminal.say("\r\x1b[K");
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

/** A test file that replays each finding. */
export function testFileText(
  { findings }: CheckReport,
  specifier: string,
): string {
  const path = specifier.startsWith(".") ? specifier : `./${specifier}`;
  const tests = findings.map(({ title, disturbance, plan, writes }) =>
    [
      `// When ${disturbance}.`,
      ...writes.map((write) => `//   ${write}`),
      `test(${JSON.stringify(upper(title))}, async () => {`,
      "  const { findings } = await checkOperator({",
      "    operator,",
      `    replay: ${JSON.stringify(plan)},`,
      "  });",
      "  assert.deepEqual(findings.map(({ title }) => title), []);",
      "});",
    ].join("\n")
  );
  return `// Written by coracle check. Each test fails until its finding is mended.
import { checkOperator } from "@coracle/operator/testing";
import assert from "node:assert/strict";
import { test } from "node:test";

const operator = new URL(${JSON.stringify(path)}, import.meta.url);

${tests.join("\n\n")}
`;
}
