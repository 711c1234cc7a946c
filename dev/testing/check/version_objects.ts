/**
 * Objects of each version of a kind, generated from its schemas, that an API
 * server would accept.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { CrdVersion, DefinedKind } from "@coracle/operator/crd";
import { isJsonObject, type OpenApiSchema } from "@coracle/operator/internal";
import { loadPatterns } from "../../apiserver/cel/pattern.ts";
import { compileRules } from "../../apiserver/crd/cel/rule_validator.ts";
import { setSchemaDefaults } from "../../apiserver/crd/schema/defaulting.ts";
import { pruneUnknown } from "../../apiserver/crd/schema/pruning.ts";
import { findingCauses } from "../../apiserver/crd/schema/schema_findings.ts";
import { validateSchema } from "../../apiserver/crd/schema/schema_validator.ts";
import { changed, fittingValue, leafChanges } from "./schema_values.ts";

/** Maximum number of generated objects of a version. */
const MOST_OBJECTS = 200;

/** A version of a kind: generates objects, and judges them. */
export interface VersionObjects {
  readonly name: string;
  /** Objects to try: those that are given for it, and generated ones. */
  readonly objects: readonly UntypedObject[];
  /** Reasons why an API server would refuse or change an object. */
  problems(object: UntypedObject): readonly string[];
}

/**
 * Returns the versions of a kind with objects of each.
 *
 * @param examples Objects of any of its versions.
 */
export async function versionObjects(
  kind: DefinedKind,
  examples: readonly object[] = [],
): Promise<readonly VersionObjects[]> {
  await loadPatterns();
  const given = examples as readonly UntypedObject[];
  return kind.versions.map((version) => {
    const schema = version.schema?.openAPIV3Schema ?? {};
    const apiVersion = `${kind.group}/${version.name}`;
    const rules = compileRules(schema, true);
    const problems = (object: UntypedObject) => {
      const plain = JSON.parse(JSON.stringify(object)) as UntypedObject;
      const dropped = pruneUnknown(plain, schema);
      return [
        ...dropped.map((path) => `${path} is no field of ${version.name}`),
        ...findingCauses(validateSchema(plain, schema), "").map(
          ({ field, message }) => `${field}: ${message}`,
        ),
        ...(rules?.validate(plain, undefined) ?? []).map(
          ({ field, message }) => `${field}: ${message}`,
        ),
      ];
    };
    const objects = [
      ...given.filter((one) => one.apiVersion === apiVersion),
      ...generated(version, { ...kind, apiVersion }),
    ];
    for (const object of objects) setSchemaDefaults(object, schema);
    return {
      name: version.name,
      objects: objects.filter((object, at) =>
        at < given.length || problems(object).length === 0
      ).slice(0, MOST_OBJECTS),
      problems,
    };
  });
}

/** Objects with and without optional fields, and each with one leaf changed. */
function generated(
  { schema }: CrdVersion,
  { kind, apiVersion, scope }: {
    readonly kind: string;
    readonly apiVersion: string;
    readonly scope?: string | undefined;
  },
): readonly UntypedObject[] {
  const { properties = {} } = schema?.openAPIV3Schema ?? {};
  const parts: OpenApiSchema = {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(properties).filter(([name]) =>
        name === "spec" || name === "status"
      ),
    ),
    required: ["spec"],
  };
  const found: UntypedObject[] = [];
  for (const optional of [true, false]) {
    const base = fittingValue(parts, { optional });
    if (!isJsonObject(base)) continue;
    // Fields near the top first: below them may be a whole pod template.
    const changes = leafChanges(parts, base)
      .toSorted((one, other) => one.path.length - other.path.length)
      .slice(0, MOST_OBJECTS / 2 - 1);
    const all = [base, ...changes.map((change) => changed(base, change))];
    for (const one of all) {
      const { spec, status } = structuredClone(one) as UntypedObject;
      found.push({
        apiVersion,
        kind,
        metadata: {
          name: "sample",
          ...scope !== "Cluster" && { namespace: "default" },
        },
        spec,
        ...status !== undefined && { status },
      });
    }
  }
  return found;
}
