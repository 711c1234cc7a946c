/**
 * Generated values that an operator hands on to a part that cannot have them, or
 * that its webhook refuses: no user would keep them.
 *
 * @module
 */
import type { StatusCause } from "@coracle/operator/core";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import { goQuote } from "../../apiserver/validation/go_value.ts";
import { type RunRecord, writesOf } from "./run_record.ts";
import { changed } from "./schema_values.ts";
import type { Accepts, CheckStep, Scenario } from "./workload.ts";

type Path = readonly (string | number)[];

/** Maximum number of runs until generated objects have usable values. */
const MAX_RUNS = 6;

/**
 * Takes out of generated objects what the operator cannot do with them.
 *
 * @param objects Objects that the server accepts.
 * @param options.accepts Whether the server accepts an object.
 * @param options.run Runs the operator, undisturbed, with objects.
 */
export async function usableObjects(
  objects: readonly JsonObject[],
  { accepts, run }: {
    readonly accepts: Accepts;
    readonly run: (steps: readonly CheckStep[]) => Promise<RunRecord>;
  },
): Promise<readonly JsonObject[]> {
  let found = objects;
  for (let runs = 1; runs <= MAX_RUNS; runs++) {
    const record = await run(found.map((object) => ({ apply: object })));
    const refused = record.steps.map(({ refused }) => refused?.causes ?? []);
    const handedOn = invalidParts(record);
    const next = await Promise.all(found.map(async (object, at) => {
      const named = new Set(refused[at]?.map(({ field }) => field));
      const paths = pathsOf(object);
      const places = new Set(placesOf(object, paths, handedOn));
      let usable = object;
      // The last first: what is taken out of a list moves those after it.
      for (const path of paths.toReversed()) {
        if (!places.has(path) && !named.has(fieldText(path))) continue;
        usable = await without(usable, path, accepts) ?? usable;
      }
      return usable;
    }));
    if (next.every((object, at) => object === found[at])) break;
    found = next;
  }
  return found;
}

/**
 * Names of the scenarios with a value that a part of the operator cannot have, not
 * even in a part that is new. What a part had at first may be what it cannot change.
 *
 * @param references Undisturbed runs, by scenario.
 * @param usual The first of them, in which the same is no news.
 */
export function unusableScenarios(
  references: ReadonlyMap<Scenario, RunRecord>,
  usual: RunRecord | undefined,
): ReadonlySet<string> {
  const known = new Set(usual && invalidParts(usual).map(causeText));
  const hasUnusable = ([{ steps }, run]: [Scenario, RunRecord]) => {
    const causes = invalidParts(run).filter((one) =>
      !known.has(causeText(one))
    );
    return causes.length > 0 && steps.some((step) =>
      "apply" in step &&
      placesOf(step.apply, pathsOf(step.apply), causes).length > 0
    );
  };
  const found = new Set(
    [...references].filter(hasUnusable).map(([{ name }]) => name),
  );
  for (const { name, sameAs } of references.keys()) {
    if (sameAs !== undefined && !found.has(name)) found.delete(sameAs.scenario);
  }
  return found;
}

function causeText({ field, message }: StatusCause): string {
  return `${field}: ${message}`;
}

/** What is wrong with the parts that the server has refused. */
function invalidParts(run: RunRecord): readonly StatusCause[] {
  return writesOf(run).flatMap(({ causes = [] }) => causes);
}

/** Message of a cause that quotes a value. */
const QUOTED = /^[\w ]+ value: ("(?:[^"\\]|\\.)*"|[^\s:]+)/;

/** Those of the paths of an object at which there are values that causes quote. */
function placesOf(
  object: JsonObject,
  paths: readonly Path[],
  causes: readonly StatusCause[],
): readonly Path[] {
  return causes.flatMap(({ field = "", message = "" }) => {
    const quoted = QUOTED.exec(message)?.[1];
    if (quoted === undefined) return [];
    const isText = quoted.startsWith('"');
    const shown = isText ? goQuote : String;
    const name = /([^.[\]]+)\]?$/.exec(field)?.[1];
    const holders = paths.filter((path) => {
      const last = path.at(-1);
      return typeof last === "string" && shown(last) === quoted ||
        shown(String(valueAt(object, path))) === quoted;
    });
    const named = holders.filter((path) => path.at(-1) === name);
    // A number or a truth value of another name is there by chance.
    const others = isText ? holders : [];
    return named.length > 0 ? named : others;
  });
}

/** Paths of all fields below the desired state of an object. */
function pathsOf(object: JsonObject): readonly Path[] {
  const found: Path[] = [];
  const walk = (value: unknown, path: Path) => {
    const inner = Array.isArray(value)
      ? [...value.entries()]
      : isJsonObject(value)
      ? Object.entries(value)
      : [];
    for (const [name, one] of inner) {
      found.push([...path, name]);
      walk(one, [...path, name]);
    }
  };
  const { apiVersion: _, kind: _kind, metadata: _metadata, ...desired } =
    object;
  walk(desired, []);
  return found;
}

function valueAt(object: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, name) => Object(value)[name], object);
}

/** Path as the causes of a refusal have it, such as `spec.ports[0].name`. */
function fieldText(path: Path): string {
  return path.reduce<string>(
    (text, name) =>
      typeof name === "number"
        ? `${text}[${name}]`
        : text === ""
        ? name
        : `${text}.${name}`,
    "",
  );
}

/**
 * Removes a field, or the smallest part with it that the server can do without.
 *
 * @returns Nothing if there is no such part.
 */
async function without(
  object: JsonObject,
  path: Path,
  accepts: Accepts,
): Promise<JsonObject | undefined> {
  for (let { length } = path; length > 1; length--) {
    const at = path.slice(0, length);
    if (valueAt(object, at) === undefined) return undefined;
    const last = at.at(-1);
    const parent = at.slice(0, -1);
    const list = valueAt(object, parent);
    const smaller = changed(
      object,
      Array.isArray(list)
        ? { path: parent, value: list.filter((_, place) => place !== last) }
        : { path: at, value: undefined },
    ) as JsonObject;
    if (await accepts(smaller)) return smaller;
  }
  return undefined;
}
