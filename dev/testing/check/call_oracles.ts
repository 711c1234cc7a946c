/**
 * Oracles for what an operator requests outside the cluster.
 *
 * @module
 */
import { callsOf, comparableCall, originOf } from "./calls.ts";
import type { RunRecord } from "./run_record.ts";
import { type Case, times, type Violation, violation } from "./violation.ts";

/** Counted requests outside the cluster of a run. */
interface CountedCalls {
  readonly counts: ReadonlyMap<
    string,
    { readonly count: number; readonly step: number; readonly url: string }
  >;
  /** Last request to each URL. */
  readonly last: ReadonlyMap<string, string>;
}

/** Counts the requests of a run that may change something outside the cluster. */
function countedCalls(
  record: RunRecord,
  masked: ReadonlySet<string>,
): CountedCalls {
  const ignored = [...masked];
  const counts = new Map<
    string,
    { count: number; step: number; url: string }
  >();
  const last = new Map<string, string>();
  for (const call of callsOf(record)) {
    if (ignored.some((start) => call.text.startsWith(start))) continue;
    const { step } = call;
    const text = comparableCall(call, masked);
    // A repeated PUT or DELETE has no effect but that of the first.
    const [method, url = ""] = call.text.split(" ", 2);
    const isRepeated = method !== "POST" && method !== "PATCH" &&
      last.get(url) === text;
    last.set(url, text);
    if (isRepeated) continue;
    counts.set(text, {
      count: (counts.get(text)?.count ?? 0) + 1,
      step,
      url,
    });
  }
  return { counts, last };
}

/** Number of requests with a method to the service of a request. */
function countOf(
  { counts }: CountedCalls,
  methods: readonly string[],
  text: string,
): number {
  const service = originOf({ text }).replace(/^\w+:/, "");
  return [...counts].filter(([one]) => {
    const origin = originOf({ text: one });
    return methods.some((method) => origin === `${method}:${service}`);
  }).reduce((sum, [, { count }]) => sum + count, 0);
}

/** Plans after which what was made outside the cluster must go as usual. */
const LEAKING: ReadonlySet<string> = new Set([
  "call",
  "crash",
  "down",
  "leader",
  "lost",
  "refuse",
]);

/** Reports requests outside the cluster that are sent too often, or never. */
export function extraCalls(
  { reference, run, plan, masked, scenario }: Case,
): readonly Violation[] {
  // What others change is put right, also outside of the cluster.
  if (plan.perturbations.some(({ do: what }) => what === "edit")) return [];
  const usual = countedCalls(reference, masked);
  const done = countedCalls(run, masked);
  const removals = ["DELETE"];
  // A service without removals, such as a chat, has nothing that is left.
  const isLeft = (text: string) => {
    const removed = countOf(usual, removals, text);
    return removed > 0 && countOf(done, removals, text) <= removed;
  };
  const found = [...done.counts].flatMap(([text, { count, step, url }]) => {
    const expected = usual.counts.get(text)?.count ?? 0;
    if (count <= expected) return [];
    // What a later PUT has put right is no harm, as in the cluster.
    const [method = ""] = text.split(" ", 1);
    const isRight = method === "PUT" &&
      done.last.get(url) === usual.last.get(url);
    if (isRight) return [];
    const harm = /^(POST|PUT)$/.test(method) && isLeft(text)
      ? `, and nobody deletes what ${
        count - expected > 1 ? "the others have" : "the other has"
      } made`
      : "";
    return [
      violation(
        "external",
        `"${text}" is done ${
          times(count)
        } outside the cluster, in the reference ${times(expected)}${harm}`,
        { step, writes: [text], signature: `external ${causeOf(text)}` },
      ),
    ];
  });
  // A removal explains what is made once more after it.
  const isRemoval = ({ text }: Violation) => text.startsWith('"DELETE ');
  return [
    ...found.toSorted((a, b) => Number(isRemoval(b)) - Number(isRemoval(a))),
    ...missingRemovals(usual, done, { run, reference, plan }),
    ...missingChanges(usual, done, { run, reference, plan, scenario }),
  ];
}

/** Reports what the operator changes outside the cluster, and no longer changes. */
function missingChanges(
  usual: CountedCalls,
  done: CountedCalls,
  { run, reference, plan, scenario }: Pick<
    Case,
    "run" | "reference" | "plan" | "scenario"
  >,
): readonly Violation[] {
  if (!isWhole({ run, reference, plan })) return [];
  // What was made in another way may need no change.
  const isMade = [...usual.counts].every(([text]) =>
    !text.startsWith("POST ") || done.counts.has(text)
  );
  if (!isMade) return [];
  return [...usual.counts].flatMap(([text, { step }]) => {
    if (!/^(PUT|PATCH) /.test(text) || done.counts.has(text)) return [];
    // Without a rest before it, a change may be one with the next.
    if ((scenario.steps[step - 1] ?? {}).settle === false) return [];
    if (scenario.steps[step]?.settle === false) return [];
    return [
      violation(
        "external",
        `"${text}" is never done outside the cluster, in the reference it is`,
        {
          step,
          writes: [`missing: ${text}`],
          signature: `unchanged ${causeOf(text)}`,
        },
      ),
    ];
  });
}

/** Whether the calls of a run can be compared with those of its reference run. */
function isWhole(
  { run, reference, plan }: Pick<Case, "run" | "reference" | "plan">,
): boolean {
  return plan.perturbations.some(({ do: what }) => LEAKING.has(what)) &&
    run.steps.length === reference.steps.length &&
    run.steps.every(({ quiet }) => quiet);
}

/** Reports what the operator made outside the cluster, and never deletes. */
function missingRemovals(
  usual: CountedCalls,
  done: CountedCalls,
  { run, reference, plan }: Pick<Case, "run" | "reference" | "plan">,
): readonly Violation[] {
  if (!isWhole({ run, reference, plan })) return [];
  const makes = ["POST", "PUT"];
  return [...usual.counts].flatMap(([text, { count, step }]) => {
    if (!text.startsWith("DELETE ")) return [];
    const found = done.counts.get(text)?.count ?? 0;
    if (found >= count) return [];
    // What was never made needs no removal.
    if (countOf(done, makes, text) < countOf(usual, makes, text)) return [];
    if (countOf(done, ["DELETE"], text) >= countOf(usual, ["DELETE"], text)) {
      return [];
    }
    return [
      violation(
        "external",
        `nobody deletes what was made outside the cluster: "${text}" is done ${
          times(found)
        }, in the reference ${times(count)}`,
        {
          step,
          writes: [`missing: ${text}`],
          signature: `leak ${causeOf(text)}`,
        },
      ),
    ];
  });
}

/** Method, service and first segment of a request: what findings share. */
function causeOf(text: string): string {
  const [, url = ""] = text.split(" ", 2);
  const [, segment = ""] = /^[a-z]+:\/\/[^/?]*(?:\/([^/?]*))?/.exec(url) ?? [];
  return `${originOf({ text })}/${segment}`;
}
