import { checkOptions, type OptionRules } from "../../core/api/options.ts";

const RULES: OptionRules<Parameters<typeof newFailures>[1]> = {
  after: "number?",
  most: "size?",
  lines: "count?",
};

/**
 * Which failures of a history are new. Pure; the limits are those of the Flink
 * operator: ten at once, a message and five lines of stack each.
 *
 * @param history What is there, in any order.
 * @param options What was told before, and the limits.
 * @throws {TypeError | RangeError} If an option is unknown, missing or makes no
 * sense.
 *
 * @example Tell each failure once
 * ```ts
 * import { newFailures } from "@coracle/operator/workflows";
 *
 * const history = [{ at: 1, text: "old" }, { at: 2, text: "new" }];
 * const { reported, after } = newFailures(history, { after: 1 });
 * if (reported.join() !== "new" || after !== 2) throw new Error("Unexpected");
 * ```
 */
export function newFailures(
  history: readonly { readonly at: number; readonly text: string }[],
  options: {
    readonly after: number | undefined;
    readonly most?: number | undefined;
    readonly lines?: number | undefined;
  },
): {
  readonly reported: readonly string[];
  readonly after: number | undefined;
} {
  checkOptions(options, RULES, "newFailures()");
  const { after, most = 10, lines = 6 } = options;
  const fresh = history
    .filter(({ at }) => after === undefined || at > after)
    .sort((a, b) => a.at - b.at);
  return {
    reported: fresh.slice(-most).map(({ text }) =>
      text.split("\n", lines).join("\n")
    ),
    after: fresh.at(-1)?.at ?? after,
  };
}
