import type { UntypedObject } from "@coracle/operator/client";
import type { DefinedKind } from "@coracle/operator/crd";
import {
  checkOption,
  convertObject,
  differences,
  failureOf,
  isDefinedKind,
  isJsonObject,
  jsonEquals,
  KEPT_ANNOTATION,
  shown,
} from "@coracle/operator/internal";
import { versionObjects } from "./check/version_objects.ts";

/** What a check of the conversion between the versions of a kind has found. */
export interface ConversionReport {
  /** Number of conversions that were tried. */
  readonly conversions: number;
  /**
   * Fields that another version cannot express, so that an annotation keeps them,
   * such as `v1 → v1beta1: spec.zones`.
   */
  readonly kept: readonly string[];
  /** Objects that are lost, refused or changed, one line for each cause. */
  readonly problems: readonly string[];
}

/** Longest object in a line of a report. */
const LONGEST_SHOWN = 200;

/**
 * Tries the conversion between all versions of a kind, with objects that are
 * generated from the schemas: each is converted to each other version, must be
 * valid there, and come back unchanged.
 *
 * @throws {TypeError} If `defineKind` did not return the kind.
 */
export async function conversionReport(
  kind: DefinedKind,
  { examples }: { readonly examples?: readonly object[] | undefined } = {},
): Promise<ConversionReport> {
  if (!isDefinedKind(kind)) {
    throw new TypeError(
      `Cannot check a conversion: only a kind of defineKind() has one: received ${typeof kind}`,
    );
  }
  checkOption(examples, "array?", {
    name: "examples",
    subject: "checkConversion()",
  });
  const versions = await versionObjects(kind, examples);
  const problems = new Map<string, string>();
  const kept = new Set<string>();
  let conversions = 0;
  for (const from of versions) {
    for (const to of versions) {
      if (from === to) continue;
      for (const object of from.objects) {
        conversions++;
        const there = plain(convertObject(kind, object, to.name));
        const why = failureOf(there);
        const bad = why === undefined
          ? [
            ...to.problems(there).map((text) => `gives what ${text}`),
            ...changes(kind, object, there).map((text) => `loses ${text}`),
          ]
          : [`fails: ${why}`];
        for (const text of bad) {
          const line = `${from.name} → ${to.name} ${text}`;
          if (!problems.has(line)) problems.set(line, textOf(object));
        }
        for (const path of keptPaths(there, from.name)) {
          kept.add(`${from.name} → ${to.name}: ${path}`);
        }
      }
    }
  }
  return {
    conversions,
    kept: [...kept].sort(),
    problems: Array.from(
      problems,
      ([line, object]) => `${line}, for ${object}`,
    ),
  };
}

/**
 * Checks the conversion between the versions of a kind with generated objects: each
 * is converted to each other version, must be valid there, and come back unchanged.
 * `coracle crd` does the same.
 *
 * @param kind Kind of `defineKind` with `versions`.
 * @param options.examples Further objects, of any version.
 * @returns The number of conversions, and the fields that an annotation keeps.
 * @throws {Error} If an object is lost, refused or changed; the error names each
 * cause and an object.
 *
 * @example A test of two versions
 * ```ts
 * import { checkConversion } from "@coracle/dev";
 * import { defineKind } from "@coracle/operator";
 * import { z } from "zod";
 *
 * const Lamp = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Lamp",
 *   spec: z.object({ watts: z.int(), colour: z.string().default("white") }),
 *   versions: [{
 *     name: "v1beta1",
 *     spec: z.object({ power: z.int() }),
 *     up: ({ spec }) => ({ spec: { watts: spec.power, colour: "white" } }),
 *     down: ({ spec }) => ({ spec: { power: spec.watts } }),
 *   }],
 * });
 * const { kept } = await checkConversion(Lamp);
 * if (kept.join() !== "v1 → v1beta1: spec.colour") throw new Error(kept.join());
 * ```
 */
export async function checkConversion(
  kind: DefinedKind,
  options: { readonly examples?: readonly object[] | undefined } = {},
): Promise<Omit<ConversionReport, "problems">> {
  const { problems, ...report } = await conversionReport(kind, options);
  if (problems.length === 0) return report;
  throw new Error(
    `Cannot convert ${kind.kind} between its versions: received ${
      problems.join("; ")
    }`,
  );
}

/** Fields that differ after the way back. */
function changes(
  kind: DefinedKind,
  object: UntypedObject,
  there: UntypedObject,
): readonly string[] {
  const version = String(object.apiVersion).split("/").pop() ?? "";
  const back = plain(convertObject(kind, there, version));
  const before = plain(object);
  if (jsonEquals(before, back)) return [];
  return Array.from(
    differences(before, back),
    ({ path, before, after }) =>
      `${path.join(".")}, which was ${shown(before)} and is ${shown(after)}`,
  );
}

/** As a server receives it. */
function plain(object: UntypedObject): UntypedObject {
  return JSON.parse(JSON.stringify(object));
}

/** Paths in the annotation of an object, of fields of a version. */
function keptPaths(
  { metadata }: UntypedObject,
  version: string,
): readonly string[] {
  const text = metadata.annotations?.[KEPT_ANNOTATION];
  if (text === undefined) return [];
  const fields: readonly { readonly path: readonly unknown[] }[] =
    JSON.parse(text)[version] ?? [];
  return fields.map(({ path }) =>
    path.map((step, at) =>
      isJsonObject(step) ? "[]" : `${at === 0 ? "" : "."}${step}`
    ).join("")
  );
}

function textOf({ spec, status }: UntypedObject): string {
  const text = JSON.stringify({ spec, status });
  return text.length > LONGEST_SHOWN
    ? `${text.slice(0, LONGEST_SHOWN)}…`
    : text;
}
