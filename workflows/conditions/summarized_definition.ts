import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/option_rules.ts";
import type { Clock } from "../../core/clock.ts";
import type { Cadence } from "./cadence.ts";
import { READY, RECONCILING, STALLED } from "./condition.ts";
import type { Notifier } from "./notifier.ts";
import { NEWS_RULES, type NewsOptions } from "./pass_news.ts";
import type { Step } from "./pass_step.ts";
import { REQUEST_NAME_RULES, type RequestNames } from "./requests.ts";
import type { ResultProcessor } from "./result_processor.ts";
import { type FinishOptions, type Roll, ROLL_RULES } from "./settle.ts";
import type { Conditioned } from "./status_lint.ts";

/** What Ready is never True beside. */
const ALWAYS_ABNORMAL: readonly string[] = [STALLED, RECONCILING];

/** What `summarized` knows of a reconciler beside its steps. */
export interface SummarizedDefinition<P extends Conditioned>
  extends Pick<FinishOptions, "gates"> {
  /**
   * The conditions that sum up others. Ready always sums up Stalled and
   * Reconciling, too, behind what is named here.
   *
   * @default {one of Ready, which sums up what the steps of the pass have set;
   * those of `failing` are bad news and speak first}
   */
  readonly rolls?: readonly Roll[] | undefined;
  /**
   * What Ready says after a success of which no other condition tells.
   *
   * @default {{ reason: "Succeeded", message: "Everything is as asked for" }}
   */
  readonly succeeded?: FinishOptions["succeeded"];
  /**
   * How often an object is looked at, such as `every(object.spec.interval)`.
   * What it throws is told of as Stalled: a person must correct it.
   */
  readonly cadence: (object: P) => Cadence;
  /**
   * Whether an object is to be left alone: its steps do not run, and its status
   * stays as it is, but for Reconciling, which goes.
   *
   * @default {never}
   */
  readonly suspended?: ((object: P) => boolean) | undefined;
  /**
   * What has to be undone before an object may vanish. The finalizer goes when
   * all have ended well, and stays while one throws or asks for another run.
   *
   * @default {nothing: there is no finalizer}
   */
  readonly cleanup?: readonly Step<P>[] | undefined;
  /**
   * Types of conditions that only this reconciler writes, beside those of
   * `rolls` and `gates`, those that its steps set, and Ready, Reconciling and
   * Stalled: its view wins over what others wrote.
   *
   * @default {[]}
   */
  readonly owned?: readonly string[] | undefined;
  /**
   * How the annotations are called by which people ask for runs.
   *
   * @default {as RequestNames says}
   */
  readonly requests?: RequestNames | undefined;
  /**
   * What looks at each end of a pass, after the library's own processors.
   *
   * @default {[]}
   */
  readonly processors?: readonly ResultProcessor<P>[] | undefined;
  /**
   * Which passes that went well are worth an event.
   *
   * @default {none}
   */
  readonly news?: NewsOptions<P> | undefined;
  /**
   * Whom news and failures are told besides.
   *
   * @default {nobody}
   */
  readonly notifier?: Notifier | undefined;
  /**
   * Gives the times of conditions, and measures pauses.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
}

const WORD_RULES = { reason: "name", message: "string" } as const;
const RULES: OptionRules<SummarizedDefinition<never>> = {
  rolls: "array?",
  gates: "strings?",
  succeeded: "object?",
  cadence: "function",
  suspended: "function?",
  cleanup: "functions?",
  owned: "strings?",
  requests: "object?",
  processors: "functions?",
  news: "object?",
  notifier: "object?",
  clock: "clock?",
};

/**
 * Refuses a definition that cannot be one.
 *
 * @throws {TypeError | RangeError} If anything is unknown, missing or makes no
 * sense.
 */
export function checkSummarized<P extends Conditioned>(
  definition: SummarizedDefinition<P>,
  steps: readonly Step<P>[],
): void {
  const subject = "a summarized reconciler";
  checkOptions(definition, RULES, subject);
  checkOption(steps, "functions", { name: "steps", subject });
  const { rolls = [], requests, news, succeeded } = definition;
  if (succeeded !== undefined) {
    checkOptions(succeeded, WORD_RULES, `${subject}, succeeded`);
  }
  for (const roll of rolls) checkOptions(roll, ROLL_RULES, `${subject}, rolls`);
  if (requests !== undefined) {
    checkOptions(requests, REQUEST_NAME_RULES, `${subject}, requests`);
  }
  if (news !== undefined) checkOptions(news, NEWS_RULES, `${subject}, news`);
  if (definition.notifier !== undefined) {
    const parts = { notify: "function" } as const;
    checkParts(definition.notifier, parts, `${subject}, notifier`);
  }
}

/** Which conditions the steps of a pass have dealt with. */
export interface DealtWith {
  /** Those of `failing`, for which True is the bad news. */
  readonly failures: ReadonlySet<string>;
  /** Those that were set. */
  readonly set: ReadonlySet<string>;
}

/**
 * The summaries of a pass: that of Ready is always among them, and takes
 * Reconciling and Stalled into account, behind everything else.
 */
export function readyRolls<P extends Conditioned>(
  { rolls = [] }: SummarizedDefinition<P>,
  { failures, set }: DealtWith,
): readonly Roll[] {
  const named = rolls.some(({ target }) => target === READY) ? rolls : [
    ...rolls,
    { target: READY, of: [...failures, ...set], abnormal: [...failures] },
  ];
  return named.map((roll) => {
    if (roll.target !== READY) return roll;
    const { of, abnormal = [] } = roll;
    return {
      ...roll,
      abnormal: [...new Set([...abnormal, ...ALWAYS_ABNORMAL])],
      ...(of !== undefined && {
        of: [...new Set([...of, ...ALWAYS_ABNORMAL])],
      }),
    };
  });
}

/** The types of conditions that are the reconciler's own in any pass. */
export function ownedTypes<P extends Conditioned>(
  definition: SummarizedDefinition<P>,
): readonly string[] {
  const { rolls = [], gates = [], owned = [] } = definition;
  const summed = rolls.flatMap(({ target, of = [], abnormal = [] }) => [
    target,
    ...of,
    ...abnormal,
  ]);
  return [
    ...new Set([READY, ...ALWAYS_ABNORMAL, ...summed, ...gates, ...owned]),
  ];
}
