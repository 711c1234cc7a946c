import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import type { Condition } from "./condition.ts";
import { recovered } from "./settle.ts";
import type { Conditioned } from "./status_lint.ts";

/** What of a pass that has gone well is worth an event. */
export interface NewsOptions<P extends Conditioned> {
  /**
   * What the object has now: a digest or a revision from its status. Another one
   * than before is news.
   */
  readonly revision: (object: P) => string | undefined;
  /**
   * The reason of the event about a new revision.
   *
   * @default {"NewArtifact"}
   */
  readonly reason?: string | undefined;
  /**
   * What the event says.
   *
   * @default {`Has <revision>`}
   */
  readonly message?: ((object: P) => string) | undefined;
  /**
   * The types of conditions that tell failures: their end is news, too.
   *
   * @default {[]}
   */
  readonly failures?: readonly string[] | undefined;
}

/** What the options of news must be. */
export const NEWS_RULES: OptionRules<NewsOptions<never>> = {
  revision: "function",
  reason: "name?",
  message: "function?",
  failures: "strings?",
};

/** One thing to tell. */
export interface News {
  /** Why, as one word for programs. */
  readonly reason: string;
  /** Why, as a sentence for people. */
  readonly message: string;
}

/** The reason of the event about a failure that is over. */
const SUCCEEDED = "Succeeded";

/**
 * What is new after a pass that did not fail: another revision, or the end of a
 * failure. Nothing is told of a pass that only found everything as it was, so
 * that events stay worth reading.
 *
 * @param before The object as the pass was given it.
 * @param after The object as the pass left it.
 * @param options What counts.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 */
export function newsOf<P extends Conditioned>(
  before: P,
  after: P,
  options: NewsOptions<P>,
): News | undefined {
  checkOptions(options, NEWS_RULES, "newsOf()");
  const { revision, reason = "NewArtifact", failures = [] } = options;
  const now = revision(after);
  if (now === undefined) return undefined;
  const message = options.message?.(after) ?? `Has ${now}`;
  if (revision(before) !== now) return { reason, message };
  const conditions = (object: P): readonly Condition[] =>
    object.status?.conditions ?? [];
  return recovered(conditions(before), conditions(after), failures)
    ? { reason: SUCCEEDED, message }
    : undefined;
}
