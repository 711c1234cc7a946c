import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "@coracle/operator/internal";
import { VERBS } from "../registry.ts";

/** Filter of requests for a fault; absent fields match all. */
export interface FaultMatch {
  /**
   * Verb or verbs: `get`, `list`, `watch`, `create`, `update`, `patch`,
   * `delete`, `deletecollection`.
   */
  readonly verb?: string | readonly string[] | undefined;
  /** Plural of the resource, such as `configmaps`. */
  readonly resource?: string | undefined;
  /** API group; empty for the core group. */
  readonly group?: string | undefined;
  /** Namespace; empty for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  /** Object name; empty for requests without one, such as lists. */
  readonly name?: string | undefined;
  /** Subresource, such as `status`; empty for the object itself. */
  readonly subresource?: string | undefined;
}

/** Effect of a fault on a request. */
export type FaultEffect =
  /**
   * Answers with this status instead of the server's own: 403 and 422 refuse a
   * request as admission, a quota or missing rights do.
   */
  | {
    readonly status: 403 | 422 | 429 | 500 | 502 | 503 | 504;
    /** Value of the `Retry-After` header, in seconds. */
    readonly retryAfter?: number | undefined;
  }
  /**
   * Lets another client change the object right before a write: it adds the
   * annotation `coracle.dev/conflict-fault` and removes it, so that only the
   * resourceVersion and the watch events show it. The server then refuses an
   * update with a resourceVersion with 409, a JSON Patch that tests the
   * resourceVersion with 422, and accepts an update without one. Other patches get
   * 409, as kube-apiserver answers when the object changes at each of its attempts
   * to apply one. A write to an object that does not exist is not affected.
   */
  | { readonly conflict: true }
  /** Answers 410 to a continue token or a watch's resourceVersion. */
  | { readonly expired: true }
  /** Delays the answer by this number of milliseconds. */
  | { readonly delay: number }
  /**
   * Answers, and asks for another connection for further requests, as
   * kube-apiserver does with `--goaway-chance`: over HTTP/2 by a GOAWAY, which
   * lets running streams go on; over HTTP/1.1 by `connection: close`.
   */
  | { readonly goAway: true }
  /**
   * Breaks the connection: before the server handles the request, or after it did
   * and before the answer, so that the client does not know the outcome.
   */
  | { readonly reset: "request" | "answer" }
  /**
   * Answers lists with the state of an earlier revision, and starts watches with
   * it, as an API server does that lags behind the others. Watches receive later
   * changes when the rule is removed.
   */
  | { readonly staleAt: number }
  /**
   * Withholds the events of a watch from one revision to before another, and
   * delivers those that follow.
   */
  | { readonly withhold: { readonly from: number; readonly to: number } }
  /** Breaks the connection after this many bytes of the body. */
  | { readonly cutAfter: number }
  /** Sends nothing more on a watch after this many events, and keeps it open. */
  | { readonly stallAfter: number }
  /** Omits the bookmark that ends a watch's initial events. */
  | { readonly withoutEndBookmark: true };

/** Fault rule: filter, frequency and effect. */
export interface FaultRule extends FaultMatch {
  /** Effect on the affected requests. */
  readonly effect: FaultEffect;
  /**
   * Probability that a matching request is affected, from 0 to 1.
   *
   * @default {1}
   */
  readonly probability?: number | undefined;
  /**
   * Number of affected requests after which the rule ends.
   *
   * @default {Infinity}
   */
  readonly count?: number | undefined;
  /**
   * Number of matching requests to skip before the first affected one.
   *
   * @default {0}
   */
  readonly skip?: number | undefined;
}

/** Active fault rule. */
export interface ActiveFault {
  /** Number of requests that the rule has affected. */
  readonly hits: number;
  /** Removes the rule; safe to call twice. */
  remove(): void;
}

/** Request as seen by fault rules. */
export interface FaultSubject {
  readonly verb: string;
  readonly resource: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

/** Whether a filter matches a request. */
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
const EFFECT_RULES = {
  status: "count?",
  retryAfter: "size?",
  conflict: "boolean?",
  expired: "boolean?",
  delay: "number?",
  goAway: "boolean?",
  reset: ["request", "answer", undefined],
  staleAt: "count?",
  withhold: "object?",
  cutAfter: "size?",
  stallAfter: "size?",
  withoutEndBookmark: "boolean?",
} as const;
const STATUSES: readonly unknown[] = [403, 422, 429, 500, 502, 503, 504];

/**
 * Validates a filter.
 *
 * @throws {TypeError} If a field is unknown or has another type.
 * @throws {RangeError} If there is no such verb.
 */
export function checkFaultMatch(match: FaultMatch): void {
  checkOptions(match, MATCH_RULES, "a fault, its requests");
  checkVerbs(match);
}

function checkVerbs({ verb = [] }: FaultMatch): void {
  for (const one of [verb].flat()) {
    checkOption(one, VERBS, { name: "verb", subject: "a fault" });
  }
}

/**
 * Validates a rule.
 *
 * @throws {TypeError} If a field is unknown or has another type.
 * @throws {RangeError} If a number is out of range, or there is no such verb.
 */
export function checkFaultRule(rule: FaultRule): void {
  checkOptions(rule, RULES, "a fault");
  checkVerbs(rule);
  checkOptions(rule.effect, EFFECT_RULES, "a fault, effect");
  const fail = (name: string, why: string, value: number): never => {
    throw new RangeError(
      `Cannot add a fault: "${name}" must be ${why}: received ${value}`,
    );
  };
  const { probability, count, skip } = rule;
  if (probability !== undefined && !(probability >= 0 && probability <= 1)) {
    fail("probability", "from 0 to 1", probability);
  }
  if (count !== undefined && !(count > 0)) fail("count", "positive", count);
  if (skip !== undefined && !(skip >= 0)) fail("skip", "zero or more", skip);
  const { effect } = rule;
  if ("status" in effect && !STATUSES.includes(effect.status)) {
    fail("status", `one of ${STATUSES.join(", ")}`, effect.status);
  }
  if ("delay" in effect && !(effect.delay >= 0)) {
    fail("delay", "zero or more", effect.delay);
  }
}
