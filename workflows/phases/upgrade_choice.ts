import { checkOptions, type OptionRules } from "../../core/api/options.ts";

/** What an upgrade does with the state of what runs. */
export type UpgradeMode = "stateless" | "savepoint" | "last-state";

/**
 * How old the state may be that an upgrade goes on from. All numbers are
 * milliseconds; moments are counted since the Unix epoch.
 */
export interface CheckpointAge {
  /** The present. */
  readonly now: number;
  /** How old a checkpoint may be. */
  readonly maxAge: number;
  /** When the job began. */
  readonly started: number;
  /**
   * When the last checkpoint was completed.
   *
   * @default {never}
   */
  readonly completed?: number | undefined;
  /**
   * When a checkpoint began that is still being taken.
   *
   * @default {never}
   */
  readonly pending?: number | undefined;
}

/** What is known when something with state is to be upgraded. */
export interface UpgradeSituation {
  /** What the new spec asks for. */
  readonly requested: UpgradeMode;
  /**
   * What the job does: `ended` by itself, well or not; `canceled` by us; `unready`
   * is everything else that is not running.
   */
  readonly job: "running" | "unready" | "canceling" | "canceled" | "ended";
  /** Whether the state that an ended job has left is known. */
  readonly stateKnown: boolean;
  /** Whether the state survives the loss of everything that runs. */
  readonly highlyAvailable: boolean;
  /** What became of the manager of the job. */
  readonly manager: "reachable" | "unreachable" | "neverStarted" | "gone";
  /**
   * Whether the last state of the old version is no use to the new one.
   *
   * @default {false}
   */
  readonly versionChanged?: boolean | undefined;
  /**
   * Whether there is a place for savepoints.
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
   * Whether to cancel even where the state is highly available.
   *
   * @default {false}
   */
  readonly preferCancel?: boolean | undefined;
  /**
   * Whether the last state will do where no savepoint can be taken.
   *
   * @default {true}
   */
  readonly fallback?: boolean | undefined;
  /**
   * How old the last state may be.
   *
   * @default {any age will do}
   */
  readonly age?: CheckpointAge | undefined;
}

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

/** How to stop what runs, and what to start from afterwards. */
export interface UpgradePlan {
  /**
   * Nothing, cancel and wait for it, stop with a savepoint, or delete what runs
   * while its highly available state stays.
   */
  readonly stop: "nothing" | "cancel" | "savepoint" | "delete";
  /**
   * Nothing, the savepoint or other recorded state, the last state, or what the
   * present deployment was itself to start from, since it never did.
   */
  readonly restore: "nothing" | "savepoint" | "last-state" | "same";
}

/** What to do: a plan, a wait, or nothing since state would be lost. */
export type UpgradeChoice =
  | { readonly plan: UpgradePlan }
  | {
    /** What it waits for. */
    readonly wait: string;
    /** Whether recovery and steady work may go on meanwhile. */
    readonly othersMayAct: boolean;
  }
  | { readonly impossible: string };

/**
 * Chooses how something with state is upgraded, so that none is lost: by what
 * was asked for, and how what runs fares. Never falls back to losing state. Pure;
 * the rules are those of the Flink operator.
 *
 * @param situation What is known.
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
export function chooseUpgrade(situation: UpgradeSituation): UpgradeChoice {
  checkOptions(situation, RULES, "chooseUpgrade()");
  const { requested, job, highlyAvailable, manager } = situation;
  const over = job === "ended" || job === "canceled";
  if (requested === "stateless") {
    return plan(over ? "nothing" : "cancel", "nothing");
  }
  // A job that ended while nobody could see it may have newer state elsewhere.
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
      return waiting("A savepoint needs a job that runs");
    }
  }
  return chooseLastState(situation);
}

/** How to go on from the last state. */
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
    return { impossible: "The manager is gone, and with it the last state" };
  }
  return waiting("The job does not run, and its last state cannot be reached");
}

/** Whether the last checkpoint is young enough to go on from. */
function byAge(
  age: CheckpointAge | undefined,
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
