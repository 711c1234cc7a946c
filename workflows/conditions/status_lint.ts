import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import {
  type Conditioned,
  conditionsIn,
  findCondition,
  isReady,
  isTrue,
  READY,
  RECONCILING,
  STALLED,
} from "./condition.ts";

const RULES: OptionRules<NonNullable<Parameters<typeof lintStatus>[1]>> = {
  abnormal: "strings?",
  inProgress: "boolean?",
};

/**
 * Finds contradictions in a status, for tests: after every run of a reconciler
 * there should be no FAIL. The rules are those of Flux' conditions check.
 *
 * @param options `abnormal` lists the types that report a problem while True,
 * the most severe first, in addition to Reconciling and Stalled; `inProgress`
 * says that a run is in progress, which relaxes the rules (false by default).
 * @returns The violations: the rule, such as `FAIL 3` as in Flux, and a
 * message.
 * @throws {TypeError | RangeError} If an option is unknown or of another type.
 *
 * @example Ready and Stalled at the same time
 * ```ts
 * import { lintStatus } from "@coracle/operator/workflows";
 *
 * const lastTransitionTime = "2026-01-01T00:00:00Z";
 * const fields = { reason: "A", message: "", lastTransitionTime };
 * const findings = lintStatus({
 *   metadata: { name: "web", generation: 1 },
 *   status: {
 *     observedGeneration: 1,
 *     conditions: [
 *       { type: "Stalled", status: "True", observedGeneration: 1, ...fields },
 *       { type: "Ready", status: "True", observedGeneration: 1, ...fields },
 *     ],
 *   },
 * });
 * if (findings[0]?.rule !== "FAIL 1") throw new Error("Unexpected findings");
 * ```
 */
export function lintStatus(
  object: Conditioned,
  options: {
    readonly abnormal?: readonly string[] | undefined;
    readonly inProgress?: boolean | undefined;
  } = {},
): { readonly rule: string; readonly message: string }[] {
  const subject = "lintStatus()";
  checkOption(object, "object", { name: "object", subject });
  checkOptions(options, RULES, subject);
  const { abnormal = [], inProgress = false } = options;
  const conditions = conditionsIn(object.status);
  const bad = [...new Set([...abnormal, RECONCILING, STALLED])];
  const find = (type: string) => findCondition(conditions, type);
  const is = (type: string) => isTrue(conditions, type);
  const ready = find(READY);
  const generation = object.metadata.generation ?? 0;
  const observed = object.status?.observedGeneration ?? 0;
  const seen = conditions.map((condition) => condition.observedGeneration ?? 0);
  const wrong = bad.filter(is);
  const present = bad.flatMap((type) => find(type) ?? []);
  const [worst] = present;
  const isDone = !inProgress && isReady(conditions);
  const hasOtherText = worst?.reason !== ready?.reason ||
    worst?.message !== ready?.message;
  /** Messages of the violated rules. */
  const broken: Readonly<Record<string, string | false | undefined>> = {
    "FAIL 1": !inProgress && is(READY) && wrong.length > 0 &&
      `Ready is True beside ${wrong.join()}`,
    "FAIL 2": ready === undefined && "Ready is missing",
    "FAIL 3": !inProgress && is(RECONCILING) && ready?.status !== "False" &&
      "Reconciling is True and Ready is not False",
    "FAIL 4": is(STALLED) && ready?.status !== "False" &&
      "Stalled is True and Ready is not False",
    "FAIL 5": find(RECONCILING) && find(STALLED) &&
      "Reconciling and Stalled are both present",
    "FAIL 6": observed > generation &&
      `observedGeneration ${observed} is ahead of the generation`,
    "FAIL 7": isDone && observed < generation &&
      `Ready, but generation ${generation} is not observed`,
    "FAIL 8": isDone && seen.some((value) => value < generation) &&
      "Ready beside a condition of an older generation",
    "FAIL 9": isDone && seen.some((value) => value !== observed) &&
      "Ready beside a condition of another generation than observed",
    "FAIL 11": inProgress && ready?.status === "Unknown" && !is(RECONCILING) &&
      "Ready is Unknown and Reconciling is not True",
    "WARN 1": !inProgress && is(READY) && worst &&
      `Ready is True and ${worst.type} is present`,
    "WARN 2": !inProgress && ready && worst && hasOtherText &&
      worst.type !== RECONCILING && worst.type !== STALLED &&
      `Ready does not have the reason and message of ${worst.type}`,
    "WARN 3": !inProgress && find(RECONCILING)?.status === "False" &&
      "Reconciling is False instead of absent",
    "WARN 4": !inProgress && find(STALLED)?.status === "False" &&
      "Stalled is False instead of absent",
    "WARN 5": !inProgress && seen.includes(0) &&
      "A condition lacks observedGeneration",
  };
  return Object.entries(broken).flatMap(([rule, message]) =>
    message ? [{ rule, message }] : []
  );
}
