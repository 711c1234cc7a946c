/**
 * Validation of CustomResourceDefinitions with kube-apiserver's messages: rules
 * as data (`tools/kubernetes/data/rules/crds.rules`), and here the checks that
 * compare schemas or compile expressions: completeness, defaults and CEL rules. Pure functions
 * of a CRD; must not import storage, requests or HTTP.
 *
 * @module
 */
import { approvalState } from "../api_approval.ts";
import type { UntypedObject } from "@coracle/operator/client";
import type { CrdVersion } from "@coracle/operator/crd";
import {
  type CrdObject,
  isJsonObject,
  jsonEquals,
  type JsonObject,
  type OpenApiSchema,
  type StatusCause,
} from "@coracle/operator/internal";
import { RuleText, type Statement } from "../../validation/rules/rule_text.ts";
import { FUNCTIONS } from "../../builtin/validation/rule_functions.ts";
import { validationLine } from "../../validation/rules/rule_words.ts";
import { goJson } from "../../validation/go_value.ts";
import { fieldError } from "../../status.ts";
import { type RuleChecker, ruleChecker } from "../cel/rule_causes.ts";
import { RuleCosts } from "../cel/rule_costs.ts";
import { compileRules } from "../cel/rule_validator.ts";
import { webhookUrl } from "../../validation/request_url.ts";
import { pattern as compiledPattern } from "../../cel/pattern.ts";
import { followSchemaPath } from "../schema/schema_path.ts";
import { childPath, FieldPath, keyPath } from "../../validation/field_path.ts";
import { defaultCauses } from "./default_rules.ts";
import { DEFINITIONS_TEXT } from "../../validation/rules/rule_data.ts";

/** Validates a new CRD; returns the violations with kube-apiserver's messages. */
export function createCauses(object: UntypedObject): StatusCause[] {
  return RULES.causes("create", object, { $unchanged: new Set() });
}

/** Validates an update of a CRD; returns the violations. */
export function updateCauses(
  object: UntypedObject,
  live: UntypedObject,
): StatusCause[] {
  const before = new Map(versionsOf(live).map((one) => [one.name, one]));
  const unchanged = versionsOf(object).filter((version) => {
    const known = before.get(version.name);
    return known && jsonEquals(schemaOf(version), schemaOf(known));
  });
  return RULES.causes("update", object, {
    $live: live,
    $unchanged: new Set(unchanged.map(({ name }) => name)),
  });
}

function versionsOf({ spec }: UntypedObject): readonly CrdVersion[] {
  return (spec as Partial<CrdObject["spec"]> | undefined)?.versions ?? [];
}

function schemaOf(version: CrdVersion): OpenApiSchema | undefined {
  return version.schema?.openAPIV3Schema;
}

/** Compiles a line of the rules; `schema FIELD STATUS` checks the schema of a version. */
function compileLine(line: string, rules: RuleText): Statement {
  const [word, field = "", ...source] = line.split(" ");
  if (word !== "schema") return validationLine(line, rules);
  const status = rules.expression(source.join(" "));
  return (scope) => {
    const version = scope.value as CrdVersion;
    const schema = schemaOf(version);
    if (schema === undefined) return;
    const unchanged = scope.variable("$unchanged") as ReadonlySet<string>;
    const path = scope.path.child(`${field}.openAPIV3Schema`).path;
    scope.path.report(schemaCauses(schema, path, {
      $status: status(scope),
      unchanged: unchanged.has(version.name),
    }));
  };
}

const UNSUPPORTED: readonly string[] = [
  "id",
  "additionalItems",
  "patternProperties",
  "definitions",
  "dependencies",
  "$ref",
];

/** Keywords allowed at the root of a schema if the status subresource is enabled. */
const ROOT_KEYWORDS: readonly string[] =
  `description type format title maximum exclusiveMaximum minimum
  exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems
  multipleOf required items properties externalDocs example
  x-kubernetes-preserve-unknown-fields x-kubernetes-validations`.split(/\s+/);

/**
 * Validates the schema of a version.
 *
 * @param options.$status Whether the status subresource is enabled.
 * @param options.unchanged Whether the schema was accepted before.
 */
function schemaCauses(
  schema: OpenApiSchema,
  path: string,
  { $status, unchanged }: {
    readonly $status: unknown;
    readonly unchanged: boolean;
  },
): StatusCause[] {
  // Unsupported keywords are reported alone, without further checks.
  const readable = isReadable(schema);
  const structural = readable ? structuralCauses(schema, path) : [];
  const wrong = readable && structural.length === 0
    ? defaultCauses(schema, path, compileRules)
    : structural;
  const costs = new RuleCosts(!unchanged);
  const checker = readable && wrong.length === 0
    ? ruleChecker(schema, costs)
    : undefined;
  const keywords = RULES.causes(
    "keywords",
    schema,
    { $unsupported: UNSUPPORTED },
    path,
  );
  return [
    ...RULES.causes(
      "root",
      schema,
      { $status, $rootKeywords: ROOT_KEYWORDS },
      path,
    ),
    ...wrong,
    ...keywords,
    ...celCauses(schema, checker, {
      path,
      sound: (at) => !new FieldPath(at, keywords).hasProblems(),
    }),
    ...costs.totalCauses(path),
  ];
}

function isReadable(schema: OpenApiSchema): boolean {
  const { properties = {}, additionalProperties, items } = schema;
  const inner = [
    ...Object.values(properties),
    ...combined(schema, "").map(([inner]) => inner),
    additionalProperties,
    items,
  ];
  return !UNSUPPORTED.some((keyword) => schema[keyword] !== undefined) &&
    !Array.isArray(items) &&
    inner.every((one) => !isJsonObject(one) || isReadable(one));
}

/**
 * Violations of the CEL rules of a schema, which are compiled where the keywords
 * are valid.
 */
function celCauses(
  schema: OpenApiSchema,
  checker: RuleChecker | undefined,
  { path, sound, uncorrelatable }: {
    readonly path: string;
    readonly sound: (path: string) => boolean;
    /** Path of the nearest ancestor whose items have no corresponding old values. */
    readonly uncorrelatable?: string | undefined;
  },
): StatusCause[] {
  if (checker === undefined) return [];
  const { properties = {}, additionalProperties, items } = schema;
  const correlates = schema["x-kubernetes-list-type"] === "map";
  const below = (
    inner: OpenApiSchema,
    at: string,
    within: string | undefined = uncorrelatable,
  ) =>
    celCauses(inner, checker.below(inner), {
      path: at,
      sound,
      uncorrelatable: within,
    });
  return [
    ...typeof additionalProperties === "object"
      ? below(additionalProperties, childPath(path, "additionalProperties"))
      : [],
    ...Object.entries(properties).flatMap(([name, inner]) =>
      below(inner, keyPath(childPath(path, "properties"), name))
    ),
    ...items
      ? below(
        items,
        childPath(path, "items"),
        uncorrelatable ?? (correlates ? undefined : path),
      )
      : [],
    ...sound(path) ? checker.check(schema, path, uncorrelatable) : [],
  ];
}

/** Schemas within `not`, `allOf`, `oneOf` and `anyOf`, with their paths. */
function combined(
  schema: OpenApiSchema,
  path: string,
): (readonly [OpenApiSchema, string])[] {
  const { not, ...lists } = schema as
    & Readonly<
      Record<"allOf" | "oneOf" | "anyOf", readonly OpenApiSchema[] | undefined>
    >
    & { readonly not?: OpenApiSchema };
  return [
    ...not ? [[not, childPath(path, "not")] as const] : [],
    ...(["allOf", "oneOf", "anyOf"] as const).flatMap((keyword) =>
      (lists[keyword] ?? []).map((inner, index) =>
        [inner, keyPath(childPath(path, keyword), index)] as const
      )
    ),
  ];
}

/**
 * Checks that a schema is structural: every value has one type, and all fields
 * within `allOf`, `anyOf`, `oneOf` and `not` are also specified outside of them.
 *
 * @param schema Schema of a whole object.
 * @param path Path of the schema in the CRD.
 * @returns Violations.
 */
export function structuralCauses(
  schema: OpenApiSchema,
  path: string,
): StatusCause[] {
  return [
    ...RULES.causes("structural", schema, {}, path),
    ...combined(schema, path).flatMap(([inner, innerPath]) =>
      completenessCauses(inner, schema, { path, innerPath })
    ),
  ].sort((a, b) =>
    `${a.field}: ${a.message}` < `${b.field}: ${b.message}` ? -1 : 1
  );
}

/** Checks that the outer schema specifies everything that the inner schema specifies. */
function completenessCauses(
  inner: OpenApiSchema,
  outer: OpenApiSchema | undefined,
  { path, innerPath }: { readonly path: string; readonly innerPath: string },
): StatusCause[] {
  if (outer === undefined) {
    return [fieldError.required(path, `because it is defined in ${innerPath}`)];
  }
  const below = (
    inner: OpenApiSchema,
    outer: OpenApiSchema | undefined,
    field: string,
  ) =>
    completenessCauses(inner, outer, {
      path: childPath(path, field),
      innerPath: childPath(innerPath, field),
    });
  const { properties = {} } = outer;
  return [
    ...combined(inner, innerPath).flatMap(([deeper, innerPath]) =>
      completenessCauses(deeper, outer, { path, innerPath })
    ),
    ...inner.items ? below(inner.items, outer.items, "items") : [],
    ...Object.entries(inner.properties ?? {}).flatMap(([name, property]) =>
      below(
        property,
        Object.hasOwn(properties, name) ? properties[name] : undefined,
        `properties[${name}]`,
      )
    ),
  ];
}

/** Parts of the versions that are reported once, for the spec, if all versions have them in common. */
function sharedParts(versions: readonly CrdVersion[] = []): JsonObject {
  const [first] = versions;
  const same = (part: keyof CrdVersion) =>
    versions.every((version) => jsonEquals(version[part], first?.[part]));
  return {
    first: versions.slice(0, 1),
    schema: same("schema"),
    subresources: same("subresources"),
    columns: same("additionalPrinterColumns"),
    selectableFields: same("selectableFields"),
  };
}

/**
 * Versions as Go encodes them, without the schemas and other fields that all
 * versions have in common.
 */
function goVersions(versions: readonly CrdVersion[] | undefined): string {
  const shown = versions?.map((version) => ({
    Name: version.name ?? "",
    Served: version.served === true,
    Storage: version.storage === true,
    Deprecated: version.deprecated === true,
    DeprecationWarning: version.deprecationWarning ?? null,
    Schema: null,
    Subresources: null,
    AdditionalPrinterColumns: null,
    SelectableFields: null,
  }));
  return goJson(shown, Object.keys(shown?.[0] ?? {}));
}

/** Field that selectors may use, or the reason why there is no such field. */
function selectableField(path: string, schema: OpenApiSchema): unknown {
  return followSchemaPath(path, schema, { brackets: false });
}

const INT_OR_STRING = [{ type: "integer" }, { type: "string" }];

/** Functions that the rules of definitions call, besides those of built-in kinds. */
const DEFINITION_FUNCTIONS: typeof FUNCTIONS = {
  approval: approvalState,
  goFieldNames: (keywords: readonly string[]) =>
    keywords.map((keyword) =>
      keyword.replace(/^x-kubernetes-/, "x-").replace(
        /(?:^|-)(\w)/g,
        (_, letter: string) => letter.toUpperCase(),
      )
    ).join(" "),
  goVersions,
  hasStatus: (versions: readonly CrdVersion[] = []) =>
    versions.some(({ subresources }) => subresources?.status !== undefined),
  isDistinct: (values: readonly unknown[]) =>
    new Set(values).size === values.length,
  isEstablished: (conditions: readonly JsonObject[] = []) =>
    conditions.some(({ type, status }) =>
      type === "Established" && status === "True"
    ),
  isIntOrString: (branches: unknown) => jsonEquals(branches, INT_OR_STRING),
  isList: Array.isArray,
  isObject: isJsonObject,
  oddCharacter: (text: string) => text.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u),
  owns: (struct: JsonObject, name: string) =>
    Object.hasOwn(struct, name) && struct[name] !== undefined,
  webhookUrl: (text: unknown) => webhookUrl(String(text)),
  patternProblem: (pattern: string) => compiledPattern(pattern).problem ?? "",
  schemaField: (path: string, schema: OpenApiSchema) =>
    followSchemaPath(path, schema),
  selectableField,
  sharedParts,
  size: (set: ReadonlySet<unknown>) => set.size,
  stored: (versions: readonly CrdVersion[] = []) =>
    versions.filter(({ storage }) => storage),
};

/** Rules of definitions. */
export const RULES: RuleText = new RuleText({
  text: DEFINITIONS_TEXT,
  compileLine,
  functions: { ...FUNCTIONS, ...DEFINITION_FUNCTIONS },
});
