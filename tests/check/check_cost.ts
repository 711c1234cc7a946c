/**
 * Program that measures the processor time of a plan of `coracle check` for an
 * operator of real size, on the runtime that runs it.
 *
 * ```sh
 * npm run check:cost -- --plans 60
 * ```
 *
 * @module
 */
import process from "node:process";
import { checkOperator } from "../../dev/testing/check/check_operator.ts";
import { commandLine } from "../support/command_line.ts";

/** Prints a line that no console of the world replaces. */
function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

const { integer } = commandLine("measure the check", {
  plans: { type: "string", default: "60" },
});

let begun: NodeJS.CpuUsage | undefined;
let first = 0;
let plans = 0;
const before = process.cpuUsage();
const report = await checkOperator({
  operator: new URL("./size/large_operator.ts", import.meta.url),
  plans: integer("plans", 1),
  budget: "30m",
  onProgress({ phase, done }) {
    if (phase !== "plans") return;
    plans = done;
    // The first ones compile.
    if (done === 5) {
      begun = process.cpuUsage();
      first = done;
    }
  },
});
const ms = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;
const all = ms(process.cpuUsage(before));
const part = begun === undefined ? NaN : ms(process.cpuUsage(begun));
const { planned, scenarios } = report.coverage;
print(
  `${plans} of ${planned} plans of ${scenarios} scenarios: ${
    Math.round(part / (plans - first))
  } ms of CPU a plan; ${
    (all / 1_000).toFixed(1)
  } s in all; ${report.findings.length} findings`,
);
for (const { title, plan } of report.findings) {
  print(`  ${title}  ${plan}`);
}
