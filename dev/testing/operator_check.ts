import type { CheckOptions, CheckReport } from "./check_options.ts";

/**
 * Checks an operator: runs a workload undisturbed, then once for each plan (a
 * crash at each write, older and missed events, conflicts, lost answers and
 * more) and compares the runs.
 *
 * Each run has an embedded API server and a virtual clock of its own, and is
 * the same for the same seed. The runs take place one after another in this
 * process; `coracle check` uses several processes.
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid, or the
 * file creates no operator.
 * @throws {Error} If the operator does not run at all.
 *
 * @example Check an operator in a test
 * ```ts ignore
 * import { checkOperator } from "@coracle/dev";
 *
 * const { findings } = await checkOperator({
 *   operator: new URL("./operator.ts", import.meta.url),
 *   budget: "1m",
 * });
 * if (findings.length > 0) throw new Error(findings[0]?.title);
 * ```
 */
export async function checkOperator(
  options: CheckOptions,
): Promise<CheckReport> {
  const engine = await import("./check/check_operator.ts");
  return await engine.checkOperator(options);
}
