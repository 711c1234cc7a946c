import { checkOptions, type OptionRules } from "../../core/api/options.ts";

const RULES: OptionRules<Parameters<typeof newFailures>[1]> = {
  after: "number?",
  most: "size?",
  lines: "count?",
};

/**
 * Selects the new failures of a history. Pure; the limits are those of the
 * Flink operator: ten failures, each with a message and five lines of stack.
 *
 * @param history The failures in any order: `at` is the time in milliseconds
 * since the Unix epoch, `text` the message and stack.
 * @param options `after` is the time of the last reported failure; store it in
 * the status, so that a restart of the operator reports nothing twice. `most`
 * is the maximum number of failures, the newest ones (10 by default), and
 * `lines` the maximum number of lines of each (6 by default).
 * @returns `reported` are the texts, the oldest first; `after` is the value of
 * the option for the next call.
 * @throws {TypeError | RangeError} If an option is unknown, missing or invalid.
 *
 * @example Report each failure once
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
