import { checkOptionNames } from "../../core/api/option_names.ts";
import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";

/** Which requests a fault befalls; what is absent matches all. */
export interface FaultMatch {
  /** Such as `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. */
  readonly verb?: string | readonly string[] | undefined;
  /** The plural of the resource, such as `configmaps`. */
  readonly resource?: string | undefined;
  /** The API group; empty for the core group. */
  readonly group?: string | undefined;
  /** The namespace; empty for objects of the cluster. */
  readonly namespace?: string | undefined;
  /** The name; empty where a request names no object, as a list. */
  readonly name?: string | undefined;
  /** Such as `status`; empty for the objects themselves. */
  readonly subresource?: string | undefined;
}

/** What happens to a request. */
export type FaultEffect =
  /** An answer of this status instead of the server's own. */
  | {
    readonly status: 429 | 500 | 502 | 503 | 504;
    /** Seconds for the `Retry-After` header. */
    readonly retryAfter?: number | undefined;
  }
  /** A write is refused as if the object had just changed: 409. */
  | { readonly conflict: true }
  /** A continue token or a watch's resourceVersion is too old: 410. */
  | { readonly expired: true }
  /** The answer begins so many milliseconds later. */
  | { readonly delay: number }
  /** The connection breaks before an answer. */
  | { readonly reset: "request" }
  /** The connection breaks after this many bytes of the answer's body. */
  | { readonly cutAfter: number }
  /** A watch stays open but says nothing after this many events. */
  | { readonly stallAfter: number }
  /** A watch never says that its initial events are over. */
  | { readonly withoutEndBookmark: true };

/** One rule: which requests, how often, and what happens to them. */
export interface FaultRule extends FaultMatch {
  /** What happens to a request that is hit. */
  readonly effect: FaultEffect;
  /**
   * How likely it is that a matching request is hit, from 0 to 1.
   *
   * @default {1}
   */
  readonly probability?: number | undefined;
  /**
   * How many requests are hit before the rule is over.
   *
   * @default {Infinity}
   */
  readonly count?: number | undefined;
  /**
   * How many matching requests pass before the first is hit.
   *
   * @default {0}
   */
  readonly skip?: number | undefined;
}

/** A rule in force. */
export interface ActiveFault {
  /** How many requests it hit. */
  readonly hits: number;
  /** Ends it; safe to call twice. */
  remove(): void;
}

/** What a rule sees of a request. */
export interface FaultSubject {
  readonly verb: string;
  readonly resource: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

/** Whether a rule is about a request. */
export function matchesFault(
  match: FaultMatch,
  subject: FaultSubject,
): boolean {
  const { verb, ...rest } = match;
  const verbs = typeof verb === "string" ? [verb] : verb;
  if (verbs !== undefined && !verbs.includes(subject.verb)) return false;
  return PARTS.every((part) =>
    rest[part] === undefined || rest[part] === subject[part]
  );
}

const PARTS = [
  "resource",
  "group",
  "namespace",
  "name",
  "subresource",
] as const;

const MATCH_RULES: OptionRules<FaultMatch> = {
  verb: "any?",
  resource: "string?",
  group: "string?",
  namespace: "string?",
  name: "string?",
  subresource: "string?",
};
const RULES: OptionRules<FaultRule> = {
  ...MATCH_RULES,
  effect: "object",
  probability: "number?",
  count: "number?",
  skip: "number?",
};
/** All members of the union {@linkcode FaultEffect}. */
const EFFECTS: readonly string[] = [
  "status",
  "retryAfter",
  "conflict",
  "expired",
  "delay",
  "reset",
  "cutAfter",
  "stallAfter",
  "withoutEndBookmark",
];

/**
 * Checks which requests are meant.
 *
 * @throws {TypeError} If a part is unknown or of another type.
 */
export function checkFaultMatch(match: FaultMatch): void {
  checkOptions(match, MATCH_RULES, "a fault, its requests");
}

/**
 * Checks a rule.
 *
 * @throws {TypeError} If a part is unknown or of another type.
 * @throws {RangeError} If a number in it is out of range.
 */
export function checkFaultRule(rule: FaultRule): void {
  checkOptions(rule, RULES, "a fault");
  checkOptionNames(rule.effect, EFFECTS, "a fault, effect");
  const { probability = 1, count = 1, skip = 0 } = rule;
  const fail = (name: string, why: string, value: number): never => {
    throw new RangeError(
      `Cannot add a fault: "${name}" must be ${why}: received ${value}`,
    );
  };
  if (!(probability >= 0 && probability <= 1)) {
    fail("probability", "from 0 to 1", probability);
  }
  if (!(count > 0)) fail("count", "positive", count);
  if (!(skip >= 0)) fail("skip", "zero or more", skip);
}
