/**
 * Oracles: pure functions that compare a run with the reference run, and check
 * what every run must fulfil.
 *
 * @module
 */
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import {
  clusterState,
  differenceName,
  differencesText,
  isIgnored,
  metadataOf,
  type StateDifference,
  stateDifferences,
  stateKey,
} from "./state.ts";
import { extraCalls } from "./call_oracles.ts";
import { drawnAgain, removedMarks, writtenAgain } from "./kept_oracles.ts";
import { withoutMark } from "./mark.ts";
import {
  isRefused,
  MAX_WRITES,
  notesOf,
  type RunRecord,
  type TracedWrite,
  writesOf,
  writeText,
} from "./run_record.ts";
import { type Case, times, type Violation, violation } from "./violation.ts";
import { appliedKeys, type Scenario } from "./workload.ts";

/** Maximum number of writes in the idle time: one per ten minutes of a day. */
const MAX_IDLE_WRITES = 144;
/** Maximum number of reads of one kind in an idle hour: one in two seconds. */
const MAX_IDLE_READS = 1_800;
/** Kinds of plans in which the operator sees an outdated state. */
const MISLEADING = new Set(["stale", "missed", "order", "cut", "expire"]);
/** Kinds whose objects hold data and may outlive their owner. */
const DATA_KINDS =
  /^(PersistentVolumeClaim|PersistentVolume|VolumeSnapshot|Secret)$/;

/**
 * Judges a run of a plan by all oracles.
 *
 * @returns The violations, starting with those that explain others.
 */
export function judge(one: Case): readonly Violation[] {
  return [
    ...unhandled(one),
    ...rights(one),
    ...ownInvariants(one),
    ...settles(one),
    ...stuckFinalizers(one),
    ...extraWrites(one),
    ...drawnAgain(one),
    ...removedMarks(one),
    ...extraCalls(one),
    ...endStates(one),
    ...statusTruth(one),
    ...bounded(one),
    ...idle(one),
  ];
}

/** Judges a reference run by the oracles that need no comparison. */
export function judgeReference(
  one: Omit<Case, "run" | "plan">,
): readonly Violation[] {
  const plan = { scenario: one.scenario.name, perturbations: [] };
  const own = { ...one, plan, run: one.reference };
  return [
    ...unhandled(own),
    ...rights(own),
    ...ownInvariants(own),
    ...settles(own),
    ...stuckFinalizers(own),
    ...leftBehind(own),
    ...sharedParts(own),
    ...wayBack(own),
    ...statusTruth(own),
    ...bounded(own),
    ...idle(own),
    ...polls(own),
    ...writtenAgain(own),
  ];
}

function unhandled({ run }: Case): readonly Violation[] {
  return notesOf(run, "rejection").slice(0, 1).map(({ text, step }) => {
    // The stack names the modules of one process.
    const [error] = text.split("\n", 1);
    return violation("rejection", `an error was not handled: ${error}`, {
      step,
    });
  });
}

/** Reports every refusal for lack of rights. */
function rights({ run }: Case): readonly Violation[] {
  const refused = writesOf(run).filter(({ code, reason, disturbed }) =>
    code === 403 && reason !== "NamespaceTerminating" && !disturbed
  ).map((write) => ({ text: writeText(write), step: write.step }));
  const found = new Map(
    [...refused, ...notesOf(run, "forbidden")].map((one) => [one.text, one]),
  );
  return [...found.values()].map(({ text, step }) =>
    violation("rights", `the operator may not ${text}`, {
      step,
      writes: [text],
    })
  );
}

function ownInvariants({ run }: Case): readonly Violation[] {
  const found = new Map(run.violations.map((one) => [one.oracle, one]));
  return [...found.values()].map(({ oracle, text, step }) =>
    violation(oracle, text, { step, signature: oracle })
  );
}

/** Reports a step after which the operator does not come to rest. */
function settles({ run }: Case): readonly Violation[] {
  const step = run.steps.findIndex(({ quiet }) => !quiet);
  if (step < 0) return [];
  const writes = writesOf(run).filter((write) => write.step === step);
  const exit = notesOf(run, "exit").findLast((one) => one.step === step);
  const text = writes.length === 0 && exit !== undefined
    ? `${exit.text}, again and again`
    : `the operator does not come to rest after "${run.steps[step]?.text}"`;
  return [repeating("settles", text, { step, writes, said: ": it repeats" })];
}

/** Creates a violation that names the most frequent of the given writes. */
function repeating(
  oracle: string,
  text: string,
  { step, writes, said = ", most often" }: {
    readonly step: number;
    readonly writes: readonly TracedWrite[];
    readonly said?: string;
  },
): Violation {
  const counts = [...countsOf(writes.map(writeText))];
  const often = counts.sort(([, a], [, b]) => b - a)[0]?.[0];
  const name = oracle === "settles" ? often?.split(" ", 2).join(" ") : often;
  return violation(
    oracle,
    often === undefined ? text : `${text}${said} "${often}"`,
    {
      step,
      writes: often === undefined ? [] : [often],
      signature: `${oracle} ${name}`,
    },
  );
}

/** Number of times that each text is in a list. */
function countsOf(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

function stuckFinalizers({ run, scenario }: Case): readonly Violation[] {
  const found = new Map<string, Violation>();
  run.steps.forEach(({ objects, quiet }, step) => {
    if (!quiet || scenario.steps[step]?.settle === false) return;
    for (const object of objects) {
      const { deletionTimestamp, finalizers } = metadataOf(object);
      if (deletionTimestamp === undefined) continue;
      // A Pod has its grace period, which may be days.
      if (!Array.isArray(finalizers) || finalizers.length === 0) continue;
      const key = stateKey(object);
      if (found.has(key)) continue;
      found.set(
        key,
        violation(
          "finalizer",
          `${key} is deleted, but its finalizers stay: ${
            JSON.stringify(finalizers)
          }`,
          {
            step,
            writes: [`delete ${key}`],
            signature: `finalizer ${object["kind"]}`,
          },
        ),
      );
    }
  });
  return [...found.values()];
}

/** Successful creations and deletions of a run, by object. */
function summary(run: RunRecord): ReadonlyMap<string, readonly TracedWrite[]> {
  const found = new Map<string, TracedWrite[]>();
  for (const write of writesOf(run)) {
    if (write.effect !== "created" && write.effect !== "deleted") continue;
    const key = `${write.effect} ${keyOf(write)}`;
    const list = found.get(key) ?? [];
    list.push(write);
    found.set(key, list);
  }
  return found;
}

/**
 * Number of deletions of objects that the run created in the same step, but the
 * reference run did not.
 */
function shortLived(
  deletions: readonly TracedWrite[],
  { run, reference }: Pick<Case, "run" | "reference">,
): number {
  const made = (record: RunRecord) =>
    writesOf(record).filter(({ effect }) => effect === "created");
  const placeOf = (one: TracedWrite) => keyOf(one) + one.step;
  const usual = Map.groupBy(made(reference), placeOf);
  const unusual = [...Map.groupBy(made(run), placeOf)].flatMap((
    [place, all],
  ) => all.slice(usual.get(place)?.length ?? 0));
  return deletions.filter(({ uid, step }) =>
    uid !== "" && unusual.some((one) => one.uid === uid && one.step === step)
  ).length;
}

function generatedPrefix({ body }: TracedWrite): string | undefined {
  const metadata = isJsonObject(body) ? body["metadata"] : undefined;
  const prefix = isJsonObject(metadata) ? metadata["generateName"] : undefined;
  return typeof prefix === "string" ? `${prefix}*` : undefined;
}

/** Reports objects that are created or deleted too often. */
function extraWrites(
  { reference, run, plan, masked }: Case,
): readonly Violation[] {
  // What others delete is created once more, as it must be.
  const isRestored = plan.perturbations.some((one) => one.do === "delete");
  const isForeign = isRestored ||
    plan.perturbations.some((one) => one.do === "edit");
  // An operator that sees a deleted owner creates objects for it, which the
  // garbage collector removes again.
  const isMisled = plan.perturbations.some((one) => MISLEADING.has(one.do));
  const usual = summary(reference);
  const found: Violation[] = [];
  for (const [key, writes] of summary(run)) {
    const expected = usual.get(key)?.length ?? 0;
    const [effect] = key.split(" ", 1);
    // An object that the operator created and deleted in one step does no harm.
    const spared = effect === "deleted"
      ? shortLived(writes, { run, reference })
      : 0;
    if (writes.length - spared <= expected) continue;
    const object = key.slice(key.indexOf(" ") + 1);
    const known = [...reference.steps, ...run.steps].flatMap(({ objects }) =>
      objects.filter((one) => stateKey(one) === object)
    );
    const bodies = writes.map(({ body }) => isJsonObject(body) ? body : {});
    if (isIgnored(object, [...known, ...bodies], masked)) continue;
    // An object that was changed by others may be created again from its definition.
    if (isForeign && (isRestored || effect === "created")) continue;
    const extra = writes.at(-1)!;
    // An object of the same name can only be created once more if it was deleted:
    // by the operator, which is found by itself, or by the garbage collector.
    const isSame = generatedPrefix(extra) === undefined &&
      !DATA_KINDS.test(extra.kind);
    if (effect === "created" && (isSame || isMisled)) continue;
    const isData = effect === "deleted" && DATA_KINDS.test(extra.kind);
    found.push(
      violation(
        "extra-writes",
        `${object} is ${effect} ${times(writes.length)}, in the reference ${
          times(expected)
        }${isData ? ": its data is lost" : ""}`,
        {
          step: extra.step,
          writes: [writeText(extra)],
          signature: `extra ${effect} ${extra.kind}`,
        },
      ),
    );
  }
  return found;
}

/** Reports the first step whose state differs from the reference run. */
function endStates(one: Case): readonly Violation[] {
  const { reference, run, masked, scenario, plan } = one;
  const ignored = new Set(reference.before);
  const down = plan.perturbations.find((one) => one.do === "down");
  const passed = new Set(
    reference.steps[Number(down?.["step"])]?.objects.map(stateKey),
  );
  for (const [step, expected] of reference.steps.entries()) {
    const found = run.steps[step];
    if (found === undefined || !found.quiet) return [];
    if (scenario.steps[step]?.settle === false) continue;
    const differences = stateDifferences(
      clusterState(expected.objects, ignored),
      clusterState(found.objects.map(withoutMark), ignored),
      masked,
    ).filter(({ object, path, found }) =>
      // Data of a state that the operator did not see, and never made, is not missing.
      !(path === "" && found === undefined && passed.has(object) &&
        DATA_KINDS.test(object.split(" ", 1)[0] as string) &&
        !isMade(run, object))
    );
    if (differences.length === 0) continue;
    return [differing(one, step, differences)];
  }
  return [];
}

/** Whether an object was there after a step of a run, or written in it. */
function isMade(run: RunRecord, object: string): boolean {
  return writesOf(run).some((write) => keyOf(write) === object) ||
    run.steps.some(({ objects }) =>
      objects.some((one) => stateKey(one) === object)
    );
}

function differing(
  { reference, run, plan }: Case,
  step: number,
  differences: readonly StateDifference[],
): Violation {
  const [first] = differences;
  const after = `after "${run.steps[step]?.text}"`;
  const objects = [...new Set(differences.map(({ object }) => object))];
  const missing = differences.filter(({ path, found }) =>
    path === "" && found === undefined
  );
  const extra = differences.filter(({ path, expected }) =>
    path === "" && expected === undefined
  );
  const text = missing.length > 0
    ? `${missing[0]?.object} is missing ${after}, and nobody creates it again`
    : extra.length > 0
    ? `${extra[0]?.object} is left ${after}, and nobody deletes it`
    : `${first?.object} has another ${
      first?.path.slice(1)
    } ${after}, and nobody puts it right`;
  const isStatus = differences.every(({ path }) => path.startsWith(".status"));
  // Fields that nobody restores are one finding.
  const [change] = plan.perturbations;
  const isForeign = change?.do === "edit" || change?.do === "delete";
  return violation(isStatus ? "status" : "end-state", text, {
    step,
    diff: differencesText(differences),
    writes: differingWrites(reference, run, objects),
    signature: isForeign
      ? `${change.do} ${change["kind"]}`
      : `end-state ${namesOf(differences)} ${
        missing.length > 0 ? "missing" : extra.length > 0 ? "left" : ""
      }`,
  });
}

/** Names of the first differences, for a signature. */
function namesOf(differences: readonly StateDifference[]): string {
  return [...new Set(differences.map(differenceName))].slice(0, 3).join();
}

/** Writes to the given objects that only one of two runs performed. */
function differingWrites(
  reference: RunRecord,
  run: RunRecord,
  objects: readonly string[],
): readonly string[] {
  const names = new Set(objects.map((one) => one.replace(/ \(\d+\)$/, "")));
  const counted = (record: RunRecord) =>
    countsOf(
      writesOf(record).filter((write) =>
        names.has(keyOf(write)) && write.effect !== "nothing"
      ).map(writeText),
    );
  const [usual, found] = [counted(reference), counted(run)];
  const missing = [...usual].filter(([text, count]) =>
    count > (found.get(text) ?? 0)
  ).map(([text]) => `missing: ${text}`);
  const extra = [...found].filter(([text, count]) =>
    count > (usual.get(text) ?? 0)
  ).map(([text]) => text);
  const both = [...missing, ...extra];
  return both.length > 0 ? both : [...usual.keys()];
}

/** Reports a reverted change that has not restored the earlier state. */
function wayBack({ reference, scenario, masked }: Case): readonly Violation[] {
  const { steps } = reference;
  const { backTo } = scenario;
  if (backTo === undefined || steps.length < scenario.steps.length) return [];
  const [expected, found] = [steps[backTo], steps.at(-1)];
  if (expected === undefined || !found?.quiet) return [];
  if (isRefused(steps.slice(backTo))) return [];
  const ignored = new Set(reference.before);
  const differences = stateDifferences(
    clusterState(expected.objects, ignored),
    clusterState(found.objects, ignored),
    masked,
  );
  const [first] = differences;
  if (first === undefined) return [];
  const objects = new Set(differences.map(({ object }) => object));
  const about = writesOf(reference).filter((write) =>
    write.effect !== "nothing" && objects.has(keyOf(write))
  ).map(writeText);
  return [
    violation(
      "path",
      `${first.object} differs after ${
        scenario.steps.slice(backTo).some((step) => "delete" in step)
          ? "a deletion and creation"
          : "a change and back"
      }${first.path === "" ? "" : `: ${first.path.slice(1)}`}`,
      {
        step: steps.length - 1,
        diff: differencesText(differences),
        writes: about.length > 0
          ? [...new Set(about)]
          : [...objects].map((object) => `missing: change ${object}`),
        signature: `back ${namesOf(differences)}`,
      },
    ),
  ];
}

/** Key of the object of a write, as in a `ClusterState`. */
function keyOf(write: TracedWrite): string {
  const at = write.namespace === "" ? "" : `${write.namespace}/`;
  return `${write.kind} ${at}${generatedPrefix(write) ?? write.name}`;
}

/** Reports objects of the operator that remain without any primary. */
function leftBehind(
  { reference, scenario, primaryKinds }: Case,
): readonly Violation[] {
  const given = new Set(reference.before);
  const applied = new Set(appliedKeys(scenario));
  const found = new Map<string, Violation>();
  reference.steps.forEach(({ objects, text, quiet }, step) => {
    const hasPrimaries = objects.some((object) =>
      primaryKinds.has(String(object["kind"]))
    );
    if (hasPrimaries || !quiet || !("delete" in (scenario.steps[step] ?? {}))) {
      return;
    }
    for (const [key, object] of clusterState(objects, given)) {
      const kind = String(object["kind"]);
      if (applied.has(key) || DATA_KINDS.test(kind) || found.has(key)) continue;
      const made = writesOf(reference).find((write) =>
        write.effect === "created" && write.kind === kind &&
        key.endsWith(write.name)
      );
      if (made === undefined) continue;
      found.set(
        key,
        violation(
          "orphan",
          `${key} is left after "${text}", and nobody deletes it`,
          {
            step,
            writes: [`missing: delete ${key}`, writeText(made)],
            signature: `orphan ${kind}`,
          },
        ),
      );
    }
  });
  return [...found.values()];
}

/** Failure of a run whose object has a part that is another primary's. */
const FOREIGN_PART =
  /^(.+?): (?:\w+: )?Cannot own (.+?) (\S+): another controller owns it\b/;

/** Reports parts to which two primaries give one name that no spec has chosen. */
function sharedParts(
  { reference, scenario }: Case,
): readonly Violation[] {
  const found = new Map<string, Violation>();
  const firstRemoval = scenario.steps.findIndex((step) => "delete" in step);
  for (const { text, step } of notesOf(reference, "failed")) {
    // The part of a deleted owner is there until the garbage collector comes.
    if (firstRemoval >= 0 && step >= firstRemoval) continue;
    const [, , kind, key = ""] = FOREIGN_PART.exec(text) ?? [];
    const work = scenario.steps[step];
    if (kind === undefined || work === undefined || !("apply" in work)) {
      continue;
    }
    const name = key.slice(key.indexOf("/") + 1);
    const { metadata: _, ...chosen } = work.apply;
    if (JSON.stringify(chosen).includes(JSON.stringify(name))) continue;
    const { text: after } = reference.steps[step] ?? { text: "" };
    found.set(
      `${kind} ${key}`,
      violation(
        "path",
        `${kind} ${key} is of two objects after "${after}", so that one of them fails`,
        {
          step,
          writes: [`apply ${kind} ${key}`],
          signature: `shared ${kind}`,
        },
      ),
    );
  }
  return [...found.values()];
}

/** Reports outdated and malformed statuses of primaries. */
function statusTruth(
  { run, reference, primaryKinds, scenario }: Case,
): readonly Violation[] {
  const found = new Map<string, Violation>();
  run.steps.forEach(({ objects, quiet, text }, step) => {
    if (!quiet || scenario.steps[step]?.settle === false) return;
    for (const object of objects) {
      const kind = String(object["kind"]);
      if (!primaryKinds.has(kind)) continue;
      for (const why of statusFaults(object)) {
        const signature = `status ${kind} ${why}`;
        // What the reference does as well is reported for it alone.
        const same = run !== reference &&
          reference.steps[step]?.objects.some((other) =>
            stateKey(other) === stateKey(object) &&
            statusFaults(other).includes(why)
          );
        if (same || found.has(signature)) continue;
        found.set(
          signature,
          violation(
            "status",
            `the status of ${stateKey(object)} ${why} after "${text}"`,
            {
              step,
              writes: [`status of ${stateKey(object)}`],
              signature,
            },
          ),
        );
      }
    }
  });
  return [...found.values()];
}

/** Faults in the status of an object while the operator is at rest. */
function statusFaults(object: JsonObject): readonly string[] {
  const { status } = object;
  const { generation } = metadataOf(object);
  if (!isJsonObject(status)) return [];
  const faults: string[] = [];
  const { observedGeneration: observed, conditions } = status;
  const isNewer = Number(observed) > Number(generation);
  const isOlder = Number(observed) < Number(generation);
  if (isNewer || isOlder && !isReconciling(conditions)) {
    faults.push(
      `has observedGeneration ${isNewer ? "after" : "before"} the generation`,
    );
  }
  if (!Array.isArray(conditions)) return faults;
  const types = new Set<unknown>();
  for (const condition of conditions) {
    if (!isJsonObject(condition)) continue;
    const { type } = condition;
    if (types.has(type)) faults.push(`has the condition ${type} twice`);
    types.add(type);
    if (!["True", "False", "Unknown"].includes(String(condition["status"]))) {
      faults.push(
        `has a condition ${type} that is neither True, False nor Unknown`,
      );
    }
    const of = condition["observedGeneration"];
    if (
      type === "Ready" && condition["status"] === "True" &&
      typeof of === "number" && of !== generation
    ) {
      faults.push("is Ready for an older generation");
    }
  }
  return faults;
}

/** Whether conditions report that the newest generation is being reconciled. */
function isReconciling(conditions: unknown): boolean {
  return Array.isArray(conditions) &&
    conditions.some((one) =>
      isJsonObject(one) && one["type"] === "Reconciling" &&
      one["status"] === "True"
    );
}

/** Reports a step with too many writes. */
function bounded({ run, reference, scenario }: Case): readonly Violation[] {
  for (const step of scenario.steps.keys()) {
    // A write that the server was too busy for was none, and is tried once more.
    const writesIn = (record: RunRecord) =>
      writesOf(record).filter((write) =>
        write.step === step && write.code !== 429
      );
    const [expected, found] = [reference, run].map((one) =>
      writesIn(one).length
    ) as [number, number];
    const limit = run === reference
      ? MAX_WRITES
      : Math.max(MAX_WRITES, 20 * expected);
    if (found <= limit) continue;
    const text = `the operator writes ${found} times after "${
      run.steps[step]?.text
    }"`;
    return [repeating("bounded", text, { step, writes: writesIn(run) })];
  }
  return [];
}

/** Reports too many writes while nothing changes. */
function idle({ run, reference, scenario }: Case): readonly Violation[] {
  const { writes, duration } = run.idle;
  const limit = run === reference
    ? MAX_IDLE_WRITES
    : Math.max(MAX_IDLE_WRITES, reference.idle.writes * 2);
  if (writes <= limit) return [];
  const { length } = scenario.steps;
  const late = writesOf(run).filter(({ step }) => step >= length);
  const hours = Math.round(duration / 3_600_000);
  const text =
    `the operator writes ${writes} times in ${hours} hours in which nothing changes`;
  return [repeating("stays", text, { step: length - 1, writes: late })];
}

/** Reports that the server is asked again and again while nothing changes. */
function polls({ run, scenario }: Case): readonly Violation[] {
  const [[read, count] = ["", 0]] = Object.entries(run.idle.reads ?? {})
    .toSorted(([, a], [, b]) => b - a);
  if (count <= MAX_IDLE_READS) return [];
  return [
    violation(
      "stays",
      `the operator asks the server ${count} times in an hour in which nothing changes: "${read}"`,
      {
        step: scenario.steps.length - 1,
        writes: [read],
        signature: `polls ${read}`,
      },
    ),
  ];
}

/**
 * Compares the states that two runs have reached by different paths. A path on
 * which the server has refused something leads to another state.
 */
export function judgePaths(
  direct: RunRecord,
  other: RunRecord,
  { scenario, masked }: {
    readonly scenario: Scenario;
    readonly masked: ReadonlySet<string>;
  },
): readonly Violation[] {
  const { sameAs } = scenario;
  const found = other.steps[sameAs?.step ?? -1];
  const expected = direct.steps.at(-1);
  if (found === undefined || expected === undefined) return [];
  const taken = other.steps.slice(0, (sameAs?.step ?? 0) + 1);
  if (isRefused(direct.steps) || isRefused(taken)) return [];
  const differences = stateDifferences(
    clusterState(expected.objects, new Set(direct.before)),
    clusterState(found.objects, new Set(other.before)),
    masked,
  ).filter((one) =>
    // What another object has left behind is an orphan, or data.
    !sameAs?.isShared || one.path !== "" || one.expected !== undefined
  );
  if (differences.length === 0) return [];
  const [first] = differences;
  return [
    violation(
      "path",
      `${first?.object} differs after "${sameAs?.scenario}" from a direct creation${
        first?.path === "" ? "" : `: ${first?.path.slice(1)}`
      }`,
      {
        step: sameAs?.step ?? 0,
        diff: differencesText(differences),
        writes: differingWrites(
          direct,
          other,
          differences.map(({ object }) => object),
        ),
        signature: `path ${namesOf(differences)}`,
      },
    ),
  ];
}
