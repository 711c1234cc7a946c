/**
 * Oracles for what an operator must keep: the random values that it has drawn, and
 * what others have written.
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
import { fieldPath, isIgnored, isMasked, metadataOf } from "./state.ts";
import { type Case, type Violation, violation } from "./violation.ts";

/** Plans after which a value may be renewed, because it is due or not its own. */
const RENEWING: ReadonlySet<string> = new Set(["clock", "throttle", "edit"]);

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
