import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import {
  type Condition,
  type Conditioned,
  findCondition,
  isReady,
  isTrue,
  READY,
  RECONCILING,
  STALLED,
} from "./condition.ts";

/** Violation of a rule: the rule, such as `FAIL 3`, and a message. */
type StatusFinding = ReturnType<typeof lintStatus>[number];

const RULES: OptionRules<
  NonNullable<Parameters<typeof lintStatus>[1]>
> = {
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
  checkOptions(options, RULES, "lintStatus()");
  const { abnormal = [], inProgress = false } = options;
  const conditions = object.status?.conditions ?? [];
  const bad = [...new Set([...abnormal, RECONCILING, STALLED])];
  const failures = [
    ...generalFailures(object, conditions),
    ...(inProgress
      ? progressFailures(conditions)
      : finalFailures(object, conditions, bad)),
  ];
  return [...failures, ...(inProgress ? [] : warnings(conditions, bad))]
    .sort((a, b) => compareRules(a.rule, b.rule));
}

function compareRules(a: string, b: string): number {
  const number = (rule: string) => Number(rule.slice(5));
  return a.slice(0, 4) === b.slice(0, 4)
    ? number(a) - number(b)
    : a < b
    ? -1
    : 1;
}

/** Rules that apply at any time. */
function* generalFailures(
  object: Conditioned,
  conditions: readonly Condition[],
): Generator<StatusFinding> {
  const ready = findCondition(conditions, READY);
  const has = (type: string) => findCondition(conditions, type) !== undefined;
  if (ready === undefined) {
    yield { rule: "FAIL 2", message: "Ready is missing" };
  }
  if (isTrue(conditions, STALLED) && ready?.status !== "False") {
    yield { rule: "FAIL 4", message: "Stalled is True and Ready is not False" };
  }
  if (has(RECONCILING) && has(STALLED)) {
    yield {
      rule: "FAIL 5",
      message: "Reconciling and Stalled are both present",
    };
  }
  const observed = object.status?.observedGeneration ?? 0;
  if (observed > (object.metadata.generation ?? 0)) {
    yield {
      rule: "FAIL 6",
      message: `observedGeneration ${observed} is ahead of the generation`,
    };
  }
}

function* progressFailures(
  conditions: readonly Condition[],
): Generator<StatusFinding> {
  if (
    findCondition(conditions, READY)?.status === "Unknown" &&
    !isTrue(conditions, RECONCILING)
  ) {
    yield {
      rule: "FAIL 11",
      message: "Ready is Unknown and Reconciling is not True",
    };
  }
}

/** Rules that apply after a run. */
function* finalFailures(
  object: Conditioned,
  conditions: readonly Condition[],
  bad: readonly string[],
): Generator<StatusFinding> {
  const ready = findCondition(conditions, READY);
  const wrong = bad.filter((type) => isTrue(conditions, type));
  if (ready?.status === "True" && wrong.length > 0) {
    yield { rule: "FAIL 1", message: `Ready is True beside ${wrong.join()}` };
  }
  if (isTrue(conditions, RECONCILING) && ready?.status !== "False") {
    yield {
      rule: "FAIL 3",
      message: "Reconciling is True and Ready is not False",
    };
  }
  if (!isReady(conditions)) return;
  const generation = object.metadata.generation ?? 0;
  const observed = object.status?.observedGeneration ?? 0;
  if (observed < generation) {
    yield {
      rule: "FAIL 7",
      message: `Ready, but generation ${generation} is not observed`,
    };
  }
  const seen = conditions.map(({ observedGeneration }) =>
    observedGeneration ?? 0
  );
  if (seen.some((value) => value < generation)) {
    yield {
      rule: "FAIL 8",
      message: "Ready beside a condition of an older generation",
    };
  }
  if (seen.some((value) => value !== observed)) {
    yield {
      rule: "FAIL 9",
      message: "Ready beside a condition of another generation than observed",
    };
  }
}

function* warnings(
  conditions: readonly Condition[],
  bad: readonly string[],
): Generator<StatusFinding> {
  const ready = findCondition(conditions, READY);
  const present = bad
    .map((type) => findCondition(conditions, type))
    .filter((condition) => condition !== undefined);
  if (ready?.status === "True" && present.length > 0) {
    yield {
      rule: "WARN 1",
      message: `Ready is True and ${present[0]!.type} is present`,
    };
  }
  const [worst] = present;
  if (
    ready !== undefined && worst !== undefined &&
    worst.type !== RECONCILING && worst.type !== STALLED &&
    (worst.reason !== ready.reason || worst.message !== ready.message)
  ) {
    yield {
      rule: "WARN 2",
      message: `Ready does not have the reason and message of ${worst.type}`,
    };
  }
  for (const [rule, type] of [["WARN 3", RECONCILING], ["WARN 4", STALLED]]) {
    if (findCondition(conditions, type!)?.status === "False") {
      yield { rule: rule!, message: `${type} is False instead of absent` };
    }
  }
  if (conditions.some((condition) => !condition.observedGeneration)) {
    yield { rule: "WARN 5", message: "A condition lacks observedGeneration" };
  }
}
