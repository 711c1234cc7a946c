import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { CheckReport } from "@coracle/dev";
import {
  defineKind,
  Operator,
  type UntypedObject,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  checkOperator,
  type EngineOptions,
  type Progress,
} from "../../../dev/testing/check/check_operator.ts";
import type {
  Exploration,
  Job,
  Judgement,
} from "../../../dev/testing/check/check_session.ts";
import type { Violation } from "../../../dev/testing/check/violation.ts";
import type { RunRecord } from "../../../dev/testing/check/run_record.ts";
import type { Scenario } from "../../../dev/testing/check/workload.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import { checkedObject, event, run, write } from "./check_case.ts";

type PlanJob = Extract<Job, { do: "plan" }>;

/** Judgement with these violations, which are findings of their own. */
function judgement(
  ...violations: readonly (string | Partial<Violation>)[]
): Judgement {
  return {
    violations: violations.map((one) => {
      const { text = "wrong", ...more } = typeof one === "string"
        ? { text: one }
        : one;
      return {
        oracle: "end-state",
        text,
        writes: [],
        diff: "",
        step: 0,
        signature: text,
        ...more,
      };
    }),
    sequence: "",
    mermaid: "",
    disturbed: [],
    cpu: 1,
  };
}

/** Reference run of an operator that creates a Secret. */
const REFERENCE = run([write("create Secret a")], [[]]);

interface Played {
  readonly report: CheckReport;
  /** Jobs of the runner, in order. */
  readonly jobs: readonly Job[];
  readonly progress: readonly Progress[];
  /** Kinds of the plans that ran, in order. */
  readonly kinds: readonly string[];
}

/** Checks an operator whose runs are made up. */
async function check(
  answers: {
    readonly reference?: (
      job: Extract<Job, { do: "reference" }>,
    ) => RunRecord;
    readonly clean?: Judgement;
    readonly plan?: (job: PlanJob, kind: string) => Judgement;
    readonly explore?: (job: Extract<Job, { do: "explore" }>) => Exploration;
  },
  options: Partial<EngineOptions> = {},
): Promise<Played> {
  const jobs: Job[] = [];
  const progress: Progress[] = [];
  const kindOf = ({ perturbations }: PlanJob) => perturbations[0]?.do ?? "";
  const report = await checkOperator({
    operator(given) {
      const operator = new Operator(given);
      operator.register(ConfigMap, { reconcile() {} });
      return operator;
    },
    workload: [{ apply: { ...checkedObject("ConfigMap", "a") } }],
    onProgress: (one) => void progress.push(one),
    runner: () =>
      Promise.resolve({
        size: 1,
        run(job) {
          jobs.push(job);
          const { reference, clean, plan, explore } = answers;
          switch (job.do) {
            case "reference":
              return Promise.resolve(reference?.(job) ?? REFERENCE);
            case "clean":
              return Promise.resolve(clean ?? judgement());
            case "plan":
              return Promise.resolve(plan?.(job, kindOf(job)) ?? judgement());
            case "explore":
              return Promise.resolve(explore!(job));
          }
        },
        close: () => Promise.resolve(),
      }),
    ...options,
  });
  const kinds = jobs.flatMap((job) => job.do === "plan" ? [kindOf(job)] : []);
  return { report, jobs, progress, kinds };
}

test("The plans of a check take turns by their kinds, up to their number", async () => {
  const all = await check({});
  assert.deepEqual(all.kinds, [
    ...["crash", "lost", "refuse", "throttle", "clock"],
    ...["crash", "crash", "clock"],
  ]);
  assert.deepEqual(all.report.coverage.byKind, {
    crash: 3,
    lost: 1,
    refuse: 1,
    throttle: 1,
    clock: 2,
  });
  assert.equal(all.report.plans, 8);
  const few = await check({}, { plans: 2 });
  assert.deepEqual(few.kinds, ["crash", "lost"]);
  const { plans, coverage } = few.report;
  assert.deepEqual([plans, coverage.planned], [2, 8]);
  assert.deepEqual(
    few.progress.map(({ phase, done, total }) => `${phase} ${done}/${total}`),
    ["reference 1/1", "plans 1/2", "plans 2/2"],
  );
});

test("A check runs the kinds of plans that it is asked for, and knows their names", async () => {
  const { kinds, report } = await check({}, { only: ["clock", "lost"] });
  assert.deepEqual(kinds, ["lost", "clock", "clock"]);
  assert.equal(report.coverage.planned, 3);
  assert.deepEqual((await check({}, { only: ["none"] })).kinds, []);
  await assert.rejects(
    check({}, { only: ["crash", "crush"] }),
    /^RangeError: Cannot check: "only" must name .* none: received "crush"$/,
  );
});

test("A finding is one that a second run of its plan shows as well", async () => {
  const only = ["lost"];
  for (
    const [again, found] of [
      [judgement("gone"), 1],
      [judgement("another", "gone"), 1],
      [judgement(), 0],
      [judgement("another"), 0],
    ] as const
  ) {
    const answers = [judgement("gone"), again];
    const { report, kinds } = await check(
      { plan: () => answers.shift() ?? judgement() },
      { only },
    );
    assert.deepEqual(kinds, ["lost", "lost"]);
    const { findings, plans, coverage } = report;
    assert.equal(findings.length, found);
    assert.deepEqual([plans, coverage.unstable], [1, 1 - found]);
  }
});

test("The first violation of a plan explains its others", async () => {
  const { report, progress } = await check(
    { plan: () => judgement("gone", "also gone") },
    { only: ["lost"] },
  );
  assert.deepEqual(report.findings.map(({ title }) => title), ["gone"]);
  assert.equal(progress.at(-1)?.findings, 1);
});

test("Equal findings are one, of the most direct plan, with one of each kind", async () => {
  const { report, kinds } = await check({
    plan: (_, kind) => kind === "crash" ? judgement() : judgement("gone"),
  });
  // Only the first is confirmed.
  assert.equal(kinds.length, 8 + 1);
  const [found, ...others] = report.findings;
  assert.deepEqual(others, []);
  assert.equal(found?.plan, "workload/lost:write=1");
  assert.equal(found.plans, 5);
  assert.deepEqual(found.also.map((plan) => plan.split(":")[0]).toSorted(), [
    "workload/clock",
    "workload/refuse",
    "workload/throttle",
  ]);
  // A more direct plan that is found later is the plan of the finding.
  const later = await check({
    plan: ({ perturbations: [one] }, kind) =>
      kind === "clock" || one?.["place"] === "after"
        ? judgement("gone")
        : judgement(),
  });
  const [best] = later.report.findings;
  assert.equal(best?.plan, "workload/crash:write=1,place=after");
  assert.equal(best.plans, 3);
  assert.deepEqual(best.also.map((plan) => plan.split(":")[0]), [
    "workload/clock",
  ]);
});

test("Findings are ranked: undisturbed runs, then plans, then compared paths", async () => {
  const found = (oracle: string) => ({ oracle, text: oracle });
  const { report } = await check({
    clean: judgement(found("path"), found("settles")),
    plan: (_, kind) => judgement(found(kind)),
  });
  assert.deepEqual(report.findings.map(({ title }) => title), [
    "settles",
    "crash",
    "lost",
    "refuse",
    "throttle",
    "clock",
    "path",
  ]);
  assert.equal(report.findings[0]?.disturbance, "nothing is disturbed");
  assert.equal(report.findings[0]?.plan, "workload/none");
});

test("A finding says what was disturbed, and where", async () => {
  const { report } = await check({
    plan: ({ perturbations: [one] }) => {
      const place = String(one?.["place"]);
      const writes = ["patch b", "create Secret a"];
      return {
        ...judgement({ text: place, writes }),
        disturbed: ["create Secret a"],
      };
    },
  }, { only: ["crash"] });
  assert.deepEqual(
    report.findings.map(({ title, disturbance }) => [title, disturbance])
      .toSorted(),
    [
      ["after", ", after its answer"],
      ["before", ", before the server has it"],
      [
        "unanswered",
        ", after the server has done it, without an answer",
      ],
    ].map(([title, where]) => [
      title,
      `the operator is killed at a write: create Secret a${where}`,
    ]),
  );
  assert.deepEqual(report.findings[0]?.writes, ["create Secret a", "patch b"]);
});

test("What differs with the seed, or is to be ignored, is masked in all jobs", async () => {
  const map = (data: string) =>
    run([write("create Secret a")], [[
      checkedObject("ConfigMap", "b", { data: { id: data } }),
    ]]);
  const { jobs } = await check({
    reference: ({ seed = 1 }) => map(`id-${seed}`),
  }, { ignore: ["ConfigMap .data.more"], only: ["lost"] });
  assert.deepEqual(
    jobs.flatMap((job) => "masked" in job ? [job.masked] : []),
    [1, 2].map(() => ["ConfigMap .data.id", "ConfigMap .data.more"]),
  );
});

test("A check that has found enough runs no further plan", async () => {
  const { kinds } = await check({ plan: () => judgement("gone") }, {
    enough: ({ title }) => title === "gone",
  });
  assert.deepEqual(kinds, ["crash", "crash"]);
});

test("A replay runs its plan, or the undisturbed run, and nothing else", async () => {
  const plan = await check({ plan: () => judgement("gone") }, {
    replay: "workload/lost:write=1",
  });
  assert.deepEqual(plan.kinds, ["lost", "lost"]);
  assert.ok(plan.jobs.every(({ do: what }) => what !== "clean"));
  const none = await check({ clean: judgement("restless") }, {
    replay: "workload/none",
  });
  assert.deepEqual(none.kinds, []);
  for (const { report } of [plan, none]) {
    assert.equal(report.findings.length, 1);
    const { plans, coverage } = report;
    assert.deepEqual([plans, coverage.planned, coverage.scenarios], [1, 1, 1]);
  }
});

test("A run without rest, and calls without an answer, are in the coverage", async () => {
  const restless = {
    ...REFERENCE,
    steps: REFERENCE.steps.map((step) => ({ ...step, quiet: false })),
    unanswered: ["GET http://a.test/"],
  };
  const { report, kinds, jobs } = await check({ reference: () => restless });
  assert.deepEqual(kinds, []);
  assert.ok(jobs.some(({ do: what }) => what === "clean"));
  const { coverage } = report;
  assert.deepEqual([coverage.unsettled, coverage.notRun], [1, 0]);
  assert.deepEqual(coverage.unanswered, ["GET http://a.test/"]);
  assert.deepEqual([coverage.writes, coverage.events], [1, 0]);
});

test("An exhaustive check reports the first violation of each schedule", async () => {
  const explored = (complete: boolean): Exploration => ({
    schedules: 5,
    runs: 3,
    states: 2,
    complete,
    found: [{ choices: "ab", judgement: judgement("gone", "also gone") }],
    cpu: 7,
  });
  for (const complete of [true, false]) {
    const { report, jobs, progress, kinds } = await check({
      explore: () => explored(complete),
    }, { exhaustive: true });
    assert.deepEqual(kinds, []);
    assert.ok(jobs.some(({ do: what }) => what === "clean"));
    assert.deepEqual(report.findings.map(({ plan, title }) => [plan, title]), [
      ["workload/schedule:choices=ab", "gone"],
    ]);
    assert.equal(report.plans, 3);
    assert.deepEqual(report.coverage.exhaustive, {
      schedules: 5,
      runs: 3,
      states: 2,
      scenarios: 1,
      leftOut: 0,
      complete,
    });
    const last = progress.at(-1);
    assert.deepEqual([last?.phase, last?.done, last?.total], [
      "schedules",
      1,
      1,
    ]);
  }
});

test("An exhaustive check takes scenarios of up to eight writes", async () => {
  const writes = (count: number) => ({
    reference: () =>
      run(
        Array.from({ length: count }, () => write("patch Secret a")),
        [[]],
      ),
    explore: (): Exploration => ({
      schedules: 1,
      runs: 1,
      states: 1,
      complete: true,
      found: [],
      cpu: 0,
    }),
  });
  await check(writes(8), { exhaustive: true });
  await assert.rejects(
    check(writes(9), { exhaustive: true }),
    /more than 8 writes or 2 objects/,
  );
});

test("Plans of events come after those of writes in the findings", async () => {
  const { report } = await check({
    reference: () =>
      run([event("ADDED Secret a"), write("create Secret a")], [[]]),
    plan: (_, kind) => judgement(kind),
  }, { only: ["cut", "throttle"] });
  assert.deepEqual(report.findings.map(({ title }) => title), [
    "throttle",
    "cut",
  ]);
});

test("A finding of several disturbances says each", async () => {
  const { report } = await check({ plan: () => judgement("gone") }, {
    replay: "workload/lost:write=1+late",
  });
  assert.equal(
    report.findings[0]?.disturbance,
    "the answer of a write is lost; then pods become ready late",
  );
});

test("A check starts no plan that its budget has no time for", async () => {
  const own = Object.getOwnPropertyDescriptor(performance, "now");
  let now = 0;
  Object.defineProperty(performance, "now", {
    configurable: true,
    value: () => now,
  });
  // Each run takes a tenth of the time.
  const step = <T>(answer: T) => {
    now += 100;
    return answer;
  };
  try {
    const { kinds, report } = await check({
      reference: () => step(REFERENCE),
      plan: () => step(judgement()),
    }, { budget: "1s" });
    assert.equal(now, 1_000);
    assert.equal(kinds.length, 8);
    assert.equal(report.plans, 8);
    now = 0;
    const short = await check({
      reference: () => step(REFERENCE),
      plan: () => step(judgement()),
    }, { budget: "900ms" });
    assert.equal(short.report.plans, 7);
    assert.equal(now, 900);
  } finally {
    // On Bun the function is the object's own.
    if (own === undefined) Reflect.deleteProperty(performance, "now");
    else Object.defineProperty(performance, "now", own);
  }
});

const Boat = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Boat",
  spec: z.object({ size: z.int().min(1).max(3), name: z.string() }),
});
const BOATS: Partial<EngineOptions> = {
  operator(given) {
    const operator = new Operator(given);
    operator.register(Boat, { reconcile() {} });
    return operator;
  },
  workload: undefined,
  examples: [{
    apiVersion: "test.coracle.dev/v1",
    kind: "Boat",
    metadata: { name: "a" },
    spec: { size: 1, name: "one" },
  } as UntypedObject],
};
const made = (job: { readonly scenario: Scenario }) =>
  run(
    [write("create Secret a", { step: job.scenario.known })],
    job.scenario.steps.map(() => []),
  );

test("Scenarios that lead to the state of another are compared, without plans", async () => {
  const { jobs, kinds, report } = await check({ reference: made }, BOATS);
  const compared = jobs.flatMap((job) =>
    job.do === "clean" && job.scenario.sameAs !== undefined ? [job] : []
  );
  assert.ok(compared.length > 0);
  for (const { scenario, other } of compared) {
    assert.equal(other?.name, scenario.sameAs?.scenario);
  }
  const planned = jobs.flatMap((job) => job.do === "plan" ? [job] : []);
  assert.ok(planned.every(({ scenario }) => scenario.sameAs === undefined));
  // The same write is planned in one of the scenarios.
  assert.equal(kinds.filter((kind) => kind === "crash").length, 3);
  assert.ok(report.coverage.pruned > 0);
  assert.equal(report.coverage.notRun, 0);
});

test("A search is complete if that of each scenario is, and shares the time", async () => {
  const limits: number[] = [];
  const { jobs, report } = await check({
    reference: made,
    explore: ({ limit }) => ({
      schedules: 1,
      runs: 1,
      states: 1,
      complete: limits.push(limit) > 1,
      found: [],
      cpu: 0,
    }),
  }, { ...BOATS, exhaustive: true, budget: "1m" });
  assert.ok(limits.length > 1);
  assert.ok(limits.every((limit) => limit <= 60_000));
  assert.ok(limits[0]! < 60_000 / limits.length + 1);
  assert.equal(report.coverage.exhaustive?.complete, false);
  assert.ok(
    jobs.every((job) =>
      job.do !== "explore" || job.scenario.sameAs === undefined
    ),
  );
});

test("The options of a file beside an operator are checked", async () => {
  const folder = temporaryFolder();
  const library = new URL("../../../mod.ts", import.meta.url);
  const operator = writeText(
    folder,
    "op.mjs",
    `import { Operator } from "${library}";\nexport default new Operator();\n`,
  );
  writeText(folder, "op.check.mjs", "export default { workload: 1 };\n");
  await assert.rejects(
    check({}, { operator, workload: undefined }),
    /op\.check\.mjs.*"workload" must be/,
  );
});

test("Invariants of another name, and steps that do nothing, are refused", async () => {
  const boat = { apiVersion: "a.io/v1", kind: "Boat", metadata: { name: "a" } };
  for (
    const [options, message] of [
      [{ invariants: { eventualy: {} } }, /"eventualy".*"eventually"/],
      [
        { invariants: { always: { small: true } } },
        /the invariant "small" must be a function: received a boolean/,
      ],
      [
        { workload: [{ aply: boat }] },
        /workload\[0\] must have one of apply, patch, delete and wait: received aply/,
      ],
      [
        { workload: [{ wait: "1h" }, { apply: boat, delete: boat }] },
        /workload\[1\] must have one of .*: received apply, delete/,
      ],
      [
        { workload: [{ patch: { kind: "Boat" }, settle: false }] },
        /workload\[0\] must have an apiVersion and a kind: received an object/,
      ],
      [{ workload: [undefined] }, /workload\[0\] must have .*received nothing/],
    ] as const
  ) {
    await assert.rejects(check({}, options as object), message);
  }
});
