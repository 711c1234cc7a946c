/**
 * Checks the operators of the corpus, and prints how many of the seeded bugs
 * `coracle check` finds, and what it reports of the correct operators:
 *
 * ```sh
 * npm run check:corpus -- --plans 400 --only resize_lost
 * ```
 *
 * A finding counts only if it is one of the plans that can show the seeded bug,
 * and if it names the write of the seeded bug. `--findings` prints all findings,
 * `--replay` replays each, `--quick` runs only the plans that can show the bug.
 * The exit code is 1 below the goals: 95 % found, no false alarm, all replayed.
 *
 * @module
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { corpus, detected, type Member, planKind } from "./corpus/corpus.ts";
import { checkOperator } from "../../testing/check/check_operator.ts";

type Finding = Awaited<ReturnType<typeof checkOperator>>["findings"][number];

const { values } = parseArgs({
  options: {
    plans: { type: "string", default: "400" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
    findings: { type: "boolean", default: false },
    replay: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
  },
});
const GOAL = 0.95;

/** Prints a line that no console of the world replaces. */
function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function describe({ plan, oracle, title, writes }: Finding): string {
  return `    ${plan}\n      ${oracle}: ${title}\n      ${writes.join("; ")}`;
}

async function check({ url, entry }: Member, replay?: string) {
  return await checkOperator({
    operator: url,
    examples: entry.examples,
    plans: Number(values.plans),
    seed: Number(values.seed),
    ...(replay === undefined ? {} : { replay }),
    ...(values.quick && entry.bug ? { only: entry.bug.plans } : {}),
  });
}

let [found, alarms, plans, cpu, replayed, replays] = [0, 0, 0, 0, 0, 0];
const all = (await corpus()).filter(({ name }) => name.includes(values.only));
const buggy = all.filter(({ entry }) => entry.bug !== undefined);

for (const member of all) {
  const { entry: { bug } } = member;
  const { findings, coverage, ...report } = await check(member);
  plans += report.plans;
  cpu += coverage.cpu;
  const proof = bug && findings.find((one) => detected(bug, one));
  let verdict = bug === undefined ? "clean" : "missed";
  if (proof !== undefined) {
    found++;
    verdict = `found by ${planKind(proof)} (${proof.oracle})`;
  } else if (bug === undefined && findings.length > 0) {
    alarms++;
    verdict = `${findings.length} false alarms`;
  }
  if (proof !== undefined && values.replay) {
    replays++;
    const again = await check(member, proof.plan);
    const isSame = again.findings.some(({ title }) => title === proof.title);
    replayed += Number(isSame);
    if (!isSame) verdict += ", not replayed";
  }
  const isGood = bug === undefined ? findings.length === 0 : proof;
  const each = Math.round(coverage.cpu / Math.max(report.plans, 1));
  print(
    `${
      isGood ? " " : "!"
    } ${member.name}: ${verdict}; ${report.plans} plans, ${each} ms of CPU each`,
  );
  if (values.findings || !isGood) {
    findings.forEach((one) => print(describe(one)));
  }
}
print(
  `detected ${found} of ${buggy.length}, false alarms among the correct ones ${alarms} of ${
    all.length - buggy.length
  }, ${
    values.replay ? `replayed ${replayed} of ${replays}, ` : ""
  }${plans} plans, ${Math.round(cpu / Math.max(plans, 1))} ms of CPU a plan`,
);
const isMet = found >= GOAL * buggy.length && alarms === 0 &&
  replayed === replays;
process.exitCode = isMet ? 0 : 1;
