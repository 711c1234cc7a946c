import assert from "node:assert/strict";
import { test } from "node:test";
import type { CheckReport } from "@coracle/dev";
import {
  checkedText,
  exitCode,
  progressText,
  shareRun,
  testFileText,
} from "../../dev/cli/check_command.ts";
import { printableTerminal } from "../../dev/cli/printable.ts";

type Finding = CheckReport["findings"][number];
type Coverage = CheckReport["coverage"];

const FINDING: Finding = {
  oracle: "end-state",
  title: 'service "a" is missing',
  plan: "life/crash:write=1",
  disturbance: "the operator is killed at a write",
  writes: ["create Service a", "missing: patch Gadget a"],
  diff: "- Service a\n+ Service b",
  sequence: ">>> killed",
  mermaid: "sequenceDiagram",
  replay: "coracle check a.ts --replay life/crash:write=1",
  plans: 1,
  also: [],
};

function report(
  coverage: Partial<Coverage> = {},
  findings: readonly Finding[] = [],
  plans = 3,
): CheckReport {
  return {
    plans,
    findings,
    coverage: {
      scenarios: 1,
      writes: 2,
      events: 0,
      planned: 3,
      pruned: 1,
      byKind: { crash: 2, stale: 1 },
      unstable: 0,
      unanswered: [],
      cpu: 1,
      ...coverage,
    },
  };
}

test("The text of a check has its plans, workload and result", () => {
  assert.equal(
    checkedText(report()),
    `3 plans ran (crash 2, stale 1); 1 plan cannot matter.
The workload has 1 scenario with 2 writes and 0 events of the operator.
Nothing was found.
`,
  );
});

const LINES: readonly (readonly [Partial<Coverage>, string])[] = [
  [
    { planned: 5 },
    "3 plans ran (crash 2, stale 1); 1 plan cannot matter; 2 did not run.",
  ],
  [
    { notRun: 1 },
    "1 scenario did not run before half of the time was up; give a bigger --budget.",
  ],
  [
    { unsettled: 1 },
    "1 scenario had no plans: the operator does not come to rest in them.",
  ],
  [
    { uncompared: 1 },
    "The states of 1 scenario were not compared: no time was left to see which fields are random; give a bigger --budget.",
  ],
  [
    { unanswered: ["GET a", "GET b", "GET c"] },
    "Nothing answered GET a, GET b, GET c: the option externals can, in a file beside the operator's such as operator.check.ts.",
  ],
  [
    { unanswered: ["GET a", "GET b", "GET c", "GET d"] },
    "Nothing answered GET a, GET b, GET c, …: the option externals can, in a file beside the operator's such as operator.check.ts.",
  ],
  [
    { unstable: 1 },
    "1 finding did not show a second time: the operator depends on something that the check does not control.",
  ],
];

for (const [coverage, line] of LINES) {
  test(`The text of a check says ${JSON.stringify(coverage)}`, () => {
    assert(checkedText(report(coverage)).split("\n").includes(line));
    if (coverage.planned !== undefined) return;
    assert(!checkedText(report()).includes(line));
  });
}

test("The text of a check without plans says what to give", () => {
  assert.match(
    checkedText(report({}, [], 0)),
    /\nNo plan ran, so .* give a bigger --budget\.\n$/,
  );
  assert.match(
    checkedText(report({ planned: 0 }, [], 0)),
    /give --examples with which it writes something\.\n$/,
  );
});

test("The text of a finding has what is needed to repeat it", () => {
  const also = { plans: 3, also: ["life/stale:write=1"] };
  assert.equal(
    checkedText(report({}, [FINDING, { ...FINDING, ...also, diff: "" }])),
    `1. Service "a" is missing   [end-state]
   When the operator is killed at a write.
   Writes:
     create Service a
     missing: patch Gadget a
   State, - expected, + found:
     - Service a
     + Service b
   Sequence:
     >>> killed
   Run it again: coracle check a.ts --replay life/crash:write=1

2. Service "a" is missing   [end-state]
   When the operator is killed at a write (and 2 more plans).
   Writes:
     create Service a
     missing: patch Gadget a
   Sequence:
     >>> killed
   Run it again: coracle check a.ts --replay life/crash:write=1
   Also shown by: life/stale:write=1

3 plans ran (crash 2, stale 1); 1 plan cannot matter.
The workload has 1 scenario with 2 writes and 0 events of the operator.
2 findings.
`,
  );
});

test("The text of a search of all orders says whether it is complete", () => {
  const exhaustive = {
    schedules: 1_234,
    runs: 1,
    states: 2,
    scenarios: 1,
    leftOut: 0,
    complete: true,
  };
  const first = (
    more: Partial<typeof exhaustive>,
    findings: readonly Finding[] = [],
  ) =>
    checkedText(report({ exhaustive: { ...exhaustive, ...more } }, findings, 0))
      .split("\n").find((line) => line.includes("schedules"));
  const took = "They took 1 run over 2 states.";
  assert.equal(
    first({}),
    `All 1,234 schedules of 1 scenario converge. ${took}`,
  );
  assert.equal(
    first({}, [FINDING]),
    `Not all of the 1,234 schedules of 1 scenario converge. ${took}`,
  );
  assert.equal(
    first({ complete: false, leftOut: 2 }),
    `1,234 schedules of 1 scenario were searched before the time was up; give a bigger --budget. ${took} 2 scenarios with more than 8 writes or 2 objects did not run.`,
  );
});

test("A written test replays the plan of a finding on the operator's file", () => {
  const text = testFileText(report({}, [FINDING]), {
    operator: "ops/a.ts",
  });
  assert.match(text, /^ {4}replay: "life\/crash:write=1",$/m);
  assert.match(text, /^test\("Service \\"a\\" is missing", async/m);
  assert.match(text, /new URL\("\.\/ops\/a\.ts", import\.meta\.url\)/);
  assert.match(
    testFileText(report({}, [FINDING]), { operator: "../a #1.ts" }),
    /new URL\("\.\.\/a%20%231\.ts", /,
  );
});

test("A written test has the seed and the examples of the check", () => {
  const examples = [{ kind: "Gadget", metadata: { name: "a" } }];
  const files = { operator: "a.ts", from: undefined };
  const settings = { seed: 2, export: undefined, examples };
  const text = testFileText(report({}, [FINDING]), files, settings);
  assert.match(text, /^ {2}seed: 2,\n {2}examples: \[\n {4}\{$/m);
  assert.match(text, /^ {4}\.\.\.options,$/m);
  assert.doesNotMatch(text, /from:|export:/);
});

test("Progress is a bar on a terminal, and lines elsewhere", () => {
  const said = (colors: boolean) => {
    let text = "";
    const progress = progressText(printableTerminal({
      colors,
      out() {},
      say: (part) => void (text += part),
      interrupts: () => new AbortController().signal,
    }));
    const show = (done: number, total: number) =>
      progress.show({ phase: "plans", done, total, findings: 1 });
    show(3, 12);
    show(12, 12);
    progress.end();
    return text;
  };
  assert.equal(said(false), "Plans 12/12, 1 finding\n");
  const bar = (full: number) => "█".repeat(full) + "░".repeat(24 - full);
  assert.equal(
    said(true),
    `${bar(6)} Plans 3/12, 1 finding\r\x1b[K${
      bar(24)
    } Plans 12/12, 1 finding\r\x1b[K`,
  );
});

test("The text of a check counts what is left out from one on", () => {
  assert.match(checkedText(report({ planned: 4 })), /; 1 did not run\.\n/);
  assert.match(
    checkedText(report({ planned: 1 }, [], 0)),
    /: give a bigger --budget\.\n$/,
  );
  const exhaustive = {
    schedules: 1,
    runs: 1,
    states: 1,
    scenarios: 1,
    leftOut: 1,
    complete: true,
  };
  assert.match(
    checkedText(report({ exhaustive }, [], 0)),
    / 1 scenario with more than 8 writes or 2 objects did not run\.\n[^]*\nNothing was found\.\n$/,
  );
});

test("The text of a finding has no blanks at the ends of lines", () => {
  const text = checkedText(report({}, [{ ...FINDING, diff: "- a\n\n+ b" }]));
  assert.match(text, /\n {5}- a\n\n {5}\+ b\n/);
});

test("A written test quotes a plan that has quotes", () => {
  const quoted = report({}, [{ ...FINDING, plan: 'life/edit:a="b"' }]);
  assert.match(
    testFileText(quoted, { operator: "a.ts" }),
    /replay: "life\/edit:a=\\"b\\"",/,
  );
});

test("Progress without a terminal is said every 100 plans or 10 seconds", () => {
  let now = 50_000;
  let said = "";
  const own = Object.getOwnPropertyDescriptor(performance, "now");
  Object.defineProperty(performance, "now", {
    configurable: true,
    value: () => now,
  });
  try {
    const progress = progressText(printableTerminal({
      colors: false,
      out() {},
      say: (part) => void (said += part),
      interrupts: () => new AbortController().signal,
    }));
    const show = (done: number, at: number) => {
      now = at;
      progress.show({ phase: "reference", done, total: 500, findings: 0 });
    };
    show(1, 60_000);
    show(2, 60_001);
    show(3, 70_001);
    show(100, 70_002);
    show(101, 80_002);
    show(102, 80_003);
  } finally {
    // On Bun the function is the object's own.
    if (own === undefined) Reflect.deleteProperty(performance, "now");
    else Object.defineProperty(performance, "now", own);
  }
  assert.deepEqual(
    said.match(/\d+(?=\/500)/g)?.map(Number),
    [2, 100, 102],
  );
});

test("Progress of nothing is a full bar", () => {
  let said = "";
  const progress = progressText(printableTerminal({
    colors: true,
    out() {},
    say: (part) => void (said += part),
    interrupts: () => new AbortController().signal,
  }));
  progress.show({ phase: "schedules", done: 0, total: 0, findings: 0 });
  assert.equal(said, `${"█".repeat(24)} Scenarios 0/0, 0 findings`);
});

test("The share of a check is of its plans, and of scenarios that did not run", () => {
  const share = (
    coverage: Partial<Coverage>,
    plans: number,
    limit?: number,
  ) => shareRun(report(coverage, [], plans), limit);
  assert.equal(share({ planned: 8 }, 2), 0.25);
  assert.equal(share({ planned: 8, scenarios: 4, notRun: 2 }, 8), 0.5);
  assert.equal(share({ planned: 8 }, 2, 2), 1);
  assert.equal(share({ planned: 8 }, 2, 4), 0.5);
  assert.equal(share({ planned: 0 }, 0), 1);
  const exhaustive = {
    schedules: 1,
    runs: 1,
    states: 1,
    scenarios: 1,
    leftOut: 0,
    complete: false,
  };
  assert.equal(share({ exhaustive }, 1), 0);
  assert.equal(share({ exhaustive: { ...exhaustive, complete: true } }, 1), 1);
});

test("A check of too few plans exits with 3, and says so in bold", () => {
  const exit = (
    share: number,
    { colors = false, findings = [], plans = 8 }: {
      readonly colors?: boolean;
      readonly findings?: readonly Finding[];
      readonly plans?: number;
    } = {},
  ) => {
    let said = "";
    const terminal = printableTerminal({
      colors,
      out() {},
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    });
    const checked = report({ planned: 999 }, findings, plans);
    return [exitCode(checked, { share, required: 0.5, terminal }), said];
  };
  const text =
    "Only 8 of 999 plans ran: 0.8 % of the check, where --require asks for 50 %. Give a bigger --budget, more --workers or a smaller workload.";
  assert.deepEqual(exit(8 / 999), [3, `${text}\n`]);
  assert.deepEqual(exit(8 / 999, { colors: true }), [
    3,
    `\x1b[1m${text}\x1b[0m\n`,
  ]);
  assert.deepEqual(exit(8 / 999, { findings: [FINDING] }), [1, `${text}\n`]);
  assert.deepEqual(exit(0.5), [0, ""]);
  assert.deepEqual(exit(0, { plans: 0 }), [2, ""]);
});

test("The text of a part of the plans does not say that nothing was found", () => {
  assert.match(
    checkedText(report({ planned: 999 }, [], 8)),
    /\nNothing was found in the 8 of 999 plans that ran\.\n$/,
  );
});
