import { checkOptions, type OptionRules } from "../../core/api/options.ts";

export type UpgradeSituation = Parameters<typeof chooseUpgrade>[0];

const RULES: OptionRules<UpgradeSituation> = {
  requested: ["stateless", "savepoint", "last-state"],
  job: ["running", "unready", "canceling", "canceled", "ended"],
  stateKnown: "boolean",
  highlyAvailable: "boolean",
  manager: ["reachable", "unreachable", "neverStarted", "gone"],
  versionChanged: "boolean?",
  savepoints: "boolean?",
  cancelable: "boolean?",
  preferCancel: "boolean?",
  fallback: "boolean?",
  age: "object?",
};

export type UpgradeChoice = ReturnType<typeof chooseUpgrade>;

type UpgradePlan = Extract<UpgradeChoice, { readonly plan: unknown }>["plan"];

/**
 * Chooses how a stateful job is upgraded without losing its state, by the
 * requested mode and the state of the job. Pure; the rules are those of the
 * Flink operator.
 *
 * @param situation The facts about the job.
 * @throws {TypeError | RangeError} If a fact is unknown, missing or of another
 * type.
 *
 * @example A job that is not running cannot take a savepoint
 * ```ts
 * import { chooseUpgrade } from "@coracle/operator/workflows";
 *
 * const choice = chooseUpgrade({
 *   requested: "savepoint",
 *   job: "unready",
 *   stateKnown: false,
 *   highlyAvailable: true,
 *   manager: "reachable",
 * });
 * if (!("plan" in choice) || choice.plan.restore !== "last-state") {
 *   throw new Error("Unexpected choice");
 * }
 * ```
 */
export function chooseUpgrade(situation: {
  /** Upgrade mode of the new spec. */
  readonly requested: "stateless" | "savepoint" | "last-state";
  /**
   * State of the job: `ended` by itself, successfully or not; `canceled` by the
   * operator; `unready` for any other job that is not running.
   */
  readonly job: "running" | "unready" | "canceling" | "canceled" | "ended";
  /** Whether the final state of an ended job is known. */
  readonly stateKnown: boolean;
  /** Whether the state survives the loss of the whole deployment. */
  readonly highlyAvailable: boolean;
  /** State of the manager of the job. */
  readonly manager: "reachable" | "unreachable" | "neverStarted" | "gone";
  /**
   * Whether the new version cannot use the last state of the old one.
   *
   * @default {false}
   */
  readonly versionChanged?: boolean | undefined;
  /**
   * Whether savepoints can be stored.
   *
   * @default {true}
   */
  readonly savepoints?: boolean | undefined;
  /**
   * Whether the job can be canceled.
   *
   * @default {true}
   */
  readonly cancelable?: boolean | undefined;
  /**
   * Whether to cancel the job even if its state is highly available.
   *
   * @default {false}
   */
  readonly preferCancel?: boolean | undefined;
  /**
   * Whether the last state may be used if no savepoint can be taken.
   *
   * @default {true}
   */
  readonly fallback?: boolean | undefined;
  /** Age limit of the last state. By default there is no limit. */
  readonly age?: {
    /** Current time in milliseconds since the Unix epoch. */
    readonly now: number;
    /** Maximum age of a checkpoint in milliseconds. */
    readonly maxAge: number;
    /** Start of the job in milliseconds since the Unix epoch. */
    readonly started: number;
    /** Completion of the last checkpoint, in milliseconds since the Unix epoch. */
    readonly completed?: number | undefined;
    /** Start of a pending checkpoint, in milliseconds since the Unix epoch. */
    readonly pending?: number | undefined;
  } | undefined;
}):
  | {
    readonly plan: {
      /**
       * Method of stopping the job: none, cancellation with a wait, a
       * savepoint, or deletion of the deployment while its highly available
       * state stays.
       */
      readonly stop: "nothing" | "cancel" | "savepoint" | "delete";
      /**
       * State to restore: none, the savepoint or other recorded state, the last
       * state, or the same as the current deployment, which never started.
       */
      readonly restore: "nothing" | "savepoint" | "last-state" | "same";
    };
  }
  | {
    /** Reason of the wait. */
    readonly wait: string;
    /** Whether recovery and other changes may go on. */
    readonly othersMayAct: boolean;
  }
  | { readonly impossible: string } {
  checkOptions(situation, RULES, "chooseUpgrade()");
  const { requested, job, highlyAvailable, manager } = situation;
  const over = job === "ended" || job === "canceled";
  if (requested === "stateless") {
    return plan(over ? "nothing" : "cancel", "nothing");
  }
  // A job that ended while its manager was unreachable may have newer state.
  const trusted = job === "canceled" ||
    job === "ended" && (!highlyAvailable || manager === "reachable");
  if (trusted) {
    return situation.stateKnown
      ? plan("nothing", "savepoint")
      : { impossible: "The job has ended, and its last state is not known" };
  }
  if (job === "canceling") {
    return { wait: "The job is being canceled", othersMayAct: false };
  }
  if (requested === "savepoint") {
    const { versionChanged = false, fallback = true } = situation;
    if (job === "running") return plan("savepoint", "savepoint");
    if (!versionChanged && !fallback) {
      return waiting("A savepoint needs a running job");
    }
  }
  return chooseLastState(situation);
}

function chooseLastState(situation: UpgradeSituation): UpgradeChoice {
  const { job, highlyAvailable, manager, savepoints = true } = situation;
  const { cancelable = true, preferCancel = false } = situation;
  const running = job === "running";
  if (situation.versionChanged) {
    if (running && savepoints) return plan("savepoint", "savepoint");
    return cancelable
      ? plan("cancel", "savepoint")
      : waiting("Another version needs a savepoint, and none can be taken");
  }
  const reachable = manager === "reachable";
  const cancel = cancelable && reachable && (preferCancel || !highlyAvailable);
  const usual = cancel
    ? plan("cancel", "savepoint")
    : plan("delete", "last-state");
  if (running) return byAge(situation.age, usual);
  if (cancel || highlyAvailable) return usual;
  if (manager === "neverStarted") return plan("delete", "same");
  if (manager === "gone") {
    return {
      impossible: "The manager was removed, and with it the last state",
    };
  }
  return waiting("The job does not run, and its last state cannot be reached");
}

/** Uses the last checkpoint only if it is recent enough. */
function byAge(
  age: UpgradeSituation["age"],
  usual: UpgradeChoice,
): UpgradeChoice {
  if (age === undefined) return usual;
  const { now, maxAge, started, completed, pending } = age;
  const fresh = (time = -Infinity) => now - time < maxAge;
  if (fresh(started) || fresh(completed)) return usual;
  return fresh(pending)
    ? waiting("A checkpoint is being taken")
    : plan("savepoint", "savepoint");
}

function plan(
  stop: UpgradePlan["stop"],
  restore: UpgradePlan["restore"],
): UpgradeChoice {
  return { plan: { stop, restore } };
}

function waiting(wait: string): UpgradeChoice {
  return { wait, othersMayAct: true };
}
