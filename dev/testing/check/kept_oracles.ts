/**
 * Oracles for what an operator must keep: the random values that it has drawn, what
 * others have written, and what a new process of it finds as it should be.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { isJsonObject } from "@coracle/operator/internal";
import { unmarkedPlaces } from "./mark.ts";
import {
  notesOf,
  type RunRecord,
  type TracedWrite,
  writesOf,
  writeText,
} from "./run_record.ts";
import {
  clusterState,
  differenceName,
  differencesText,
  fieldPath,
  isIgnored,
  isMasked,
  metadataOf,
  stateDifferences,
  stateKey,
} from "./state.ts";
import { type Case, type Violation, violation } from "./violation.ts";

/** Plans after which a value may be renewed, because it is due or not its own. */
const RENEWING: ReadonlySet<string> = new Set(["clock", "throttle", "edit"]);

/**
 * Maximum number of changes of one object in an idle day that no schedule of its own
 * explains: those of the runs at the end of the `maxInterval`, and one more.
 */
const MAX_UNSCHEDULED = 3;

/** Random value of a Secret: how many it had in one life, and the last write. */
interface Drawn {
  readonly count: number;
  readonly write: TracedWrite;
  readonly field: string;
}

/** Values that the operator has written to the random fields of its Secrets. */
function drawnValues(
  record: RunRecord,
  isRandom: (place: string) => boolean,
): ReadonlyMap<string, Drawn> {
  const values = new Map<string, Set<string>>();
  const found = new Map<string, Drawn>();
  for (const write of writesOf(record)) {
    const { kind, subresource, effect, body, uid } = write;
    if (kind !== "Secret" || subresource !== "" || !isJsonObject(body)) {
      continue;
    }
    if (effect !== "created" && effect !== "changed") continue;
    const { data, stringData } = body;
    const texts = Object.entries(isJsonObject(stringData) ? stringData : {})
      .map(([name, value]) =>
        [name, Buffer.from(String(value)).toString("base64")] as const
      );
    for (const [name, value] of [...Object.entries(data ?? {}), ...texts]) {
      const field = fieldPath(".data", name);
      if (typeof value !== "string" || !isRandom(`${kind} ${field}`)) continue;
      const place = `${write.namespace}/${write.name} ${field}`;
      const life = values.get(`${uid} ${place}`) ?? new Set();
      values.set(`${uid} ${place}`, life.add(value));
      const before = found.get(place);
      if (before !== undefined && before.count >= life.size) continue;
      found.set(place, { count: life.size, write, field });
    }
  }
  return found;
}

/** Reports random values of Secrets that are drawn again, such as passwords. */
export function drawnAgain(
  { reference, run, plan, masked, ignored = new Set() }: Case,
): readonly Violation[] {
  if (plan.perturbations.some(({ do: what }) => RENEWING.has(what))) return [];
  // What differs with the seed is random; the rest is compared by itself.
  const isRandom = (place: string) =>
    isMasked(place, masked) && !isMasked(place, ignored);
  const usual = drawnValues(reference, isRandom);
  return [...drawnValues(run, isRandom)].flatMap(([place, one]) => {
    const { count, write, field } = one;
    if (count < 2 || usual.get(place)?.count !== 1) return [];
    const key = `${write.kind} ${write.namespace}/${write.name}`;
    const body = isJsonObject(write.body) ? write.body : {};
    const isLeftOut = reference.before.includes(key) ||
      isIgnored(key, [body], masked);
    return isLeftOut ? [] : [
      violation(
        "extra-writes",
        `${key} gets another ${
          field.slice(1)
        }, in the reference it keeps the first one: its data is lost`,
        {
          step: write.step,
          writes: [writeText(write)],
          signature: `drawn again ${write.kind} ${field}`,
        },
      ),
    ];
  });
}

/** Reports annotations and labels of others that the operator removes. */
export function removedMarks(
  { reference, run, plan, scenario }: Case,
): readonly Violation[] {
  return plan.perturbations.flatMap((one) => {
    if (one.do !== "annotate") return [];
    const { kind, namespace, name } = one;
    const begin = Number(one["step"]);
    const at = namespace === undefined ? name : `${namespace}/${name}`;
    const key = `${kind} ${at}`;
    const target = reference.steps[begin]?.objects.find((object) => {
      const metadata = metadataOf(object);
      return object["kind"] === kind && metadata["name"] === name &&
        metadata["namespace"] === namespace;
    });
    const { uid } = metadataOf(target ?? {});
    // The server may have refused the annotation.
    const isMarked = notesOf(run, "disturbance").some(({ step, text }) =>
      step === begin && text === `someone else: MODIFIED ${key}`
    );
    if (uid === undefined || !isMarked) return [];
    for (const [step, { objects, text, quiet }] of run.steps.entries()) {
      if (step < begin || !quiet) continue;
      if (scenario.steps[step]?.settle === false) continue;
      const object = objects.find((object) => metadataOf(object).uid === uid);
      const [place] = unmarkedPlaces(object ?? {});
      if (object === undefined || place === undefined) continue;
      const writes = writesOf(run).filter((write) =>
        write.uid === uid && write.step >= begin && write.step <= step &&
        write.effect === "changed"
      );
      return [
        violation(
          "others",
          `${key} has lost the ${place} of others after "${text}"`,
          {
            step,
            writes: [...new Set(writes.map(writeText))],
            signature: `others ${kind} ${place}`,
          },
        ),
      ];
    }
    return [];
  });
}

/**
 * Reports what each run changes for no reason, such as the time in a status: a process
 * that starts at rest changes it. What the operator changes on a schedule of its own,
 * such as the time of a probe, may change.
 */
export function writtenAgain(
  { reference: { restart, before, trace }, scenario, ignored }: Case,
): readonly Violation[] {
  if (restart === undefined) return [];
  const { length } = scenario.steps;
  const isChange = ({ effect }: TracedWrite) => effect !== "nothing";
  const late = writesOf({ trace }).filter((write) =>
    write.step >= length && isChange(write)
  );
  const known = new Set(before);
  const state = (objects: typeof restart.before) =>
    clusterState(objects, known, { keepsTimes: true });
  const writes = Map.groupBy(restart.writes.filter(isChange), objectOf);
  const differing = stateDifferences(
    state(restart.before),
    state(restart.after),
    ignored,
  ).filter(({ object }) => writes.has(object));
  const found = Map.groupBy(
    differing,
    ({ object }) => object.split(" ", 1)[0]!,
  );
  return [...found].flatMap(([kind, differences]) => {
    const count = restart.before.filter((one) => one["kind"] === kind).length;
    const scheduled = late.filter((write) => write.kind === kind).length;
    if (scheduled > MAX_UNSCHEDULED * Math.max(count, 1)) return [];
    const [{ object, path, found } = { object: "", path: "" }] = differences;
    const what = path === ""
      ? found === undefined ? "is deleted" : "is created"
      : `gets another ${path.slice(1)}`;
    return [
      violation(
        "stays",
        `${object} ${what} when the operator starts again, though nothing has changed`,
        {
          step: length - 1,
          diff: differencesText(differences),
          writes: [...new Set((writes.get(object) ?? []).map(writeText))],
          signature: `again ${[...new Set(differences.map(differenceName))]}`,
        },
      ),
    ];
  });
}

/** Key of the object of a write. */
function objectOf({ kind, namespace, name }: TracedWrite): string {
  return stateKey({ kind, metadata: { name, ...namespace && { namespace } } });
}
