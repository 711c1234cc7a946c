/**
 * Checks the operators of the corpus, and prints how many of the seeded bugs
 * `coracle check` finds, and what it reports of the correct operators:
 *
 * ```sh
 * npm run check:corpus -- --only resize_lost --findings
 * ```
 *
 * A finding counts only if its plan is of a kind that can show the seeded bug, and
 * if it names the write of the seeded bug. The check of a buggy operator ends with
 * that finding, which is replayed; a correct one is checked by all its plans.
 * `--plans N` limits the plans of each, `--findings` prints all findings, `--table`
 * writes the table of the guide. The exit code is 1 below the goals: 95 % found, no
 * false alarm, all replayed.
 *
 * @module
 */
import process from "node:process";
import { corpus, type Verdict, verdictOf } from "./corpus/corpus.ts";
import { commandLine } from "../support/command_line.ts";

const { values, integer } = commandLine("check the corpus", {
  plans: { type: "string", default: "5000" },
  seed: { type: "string", default: "1" },
  only: { type: "string", default: "" },
  findings: { type: "boolean", default: false },
  table: { type: "boolean", default: false },
});
const GOAL = 0.95;

/** Prints a line that no console of the world replaces. */
function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function report({ name, isBuggy, proof, isReplayed, ...one }: Verdict): void {
  const { plans, cpu, findings } = one;
  const isGood = isBuggy ? isReplayed : findings.length === 0;
  const verdict = !isBuggy
    ? isGood ? "clean" : `${findings.length} false alarms`
    : proof === undefined
    ? "missed"
    : `found by ${proof.plan} (${proof.oracle})${
      isReplayed ? "" : ", not replayed"
    }`;
  const each = Math.round(cpu / Math.max(plans, 1));
  print(
    `${
      isGood ? " " : "!"
    } ${name}: ${verdict}; ${plans} plans, ${each} ms of CPU each`,
  );
  if (!values.findings && isGood) return;
  for (const { plan, oracle, title, writes } of findings) {
    print(`    ${plan}\n      ${oracle}: ${title}\n      ${writes.join("; ")}`);
  }
}

const all = (await corpus()).filter(({ name }) => name.includes(values.only));
const verdicts: Verdict[] = [];
for (const member of all) {
  const verdict = await verdictOf(member, {
    plans: integer("plans", 1),
    seed: integer("seed"),
  });
  verdicts.push(verdict);
  report(verdict);
}

const buggy = verdicts.filter(({ isBuggy }) => isBuggy);
const correct = verdicts.filter(({ isBuggy }) => !isBuggy);
const found = buggy.filter(({ proof }) => proof !== undefined);
const replayed = buggy.filter(({ isReplayed }) => isReplayed);
const alarms = correct.filter(({ findings }) => findings.length > 0);
const sum = (of: "plans" | "cpu", list: readonly Verdict[]) =>
  list.reduce((total, one) => total + one[of], 0);
if (values.table) {
  print("| bug | found by | oracle |\n| --- | --- | --- |");
  for (const { name, proof } of buggy) {
    const file = name.slice(name.indexOf("/") + 1);
    const [scenario, rest = ""] = proof?.plan.split("/") ?? [];
    const kind = rest.split(":", 1)[0];
    print(
      proof === undefined
        ? `| \`${file}\` | not found | |`
        : `| \`${file}\` | \`${kind}\` in \`${scenario}\` | \`${proof.oracle}\` |`,
    );
  }
}
print(
  `Found ${found.length} of ${buggy.length} seeded bugs, replayed ${replayed.length} of ${found.length}; reported ${alarms.length} of ${correct.length} correct operators in ${
    sum("plans", correct)
  } plans; ${
    Math.round(sum("cpu", verdicts) / Math.max(sum("plans", verdicts), 1))
  } ms of CPU a plan.`,
);
const isMet = found.length >= GOAL * buggy.length && alarms.length === 0 &&
  replayed.length === found.length;
process.exitCode = isMet ? 0 : 1;
