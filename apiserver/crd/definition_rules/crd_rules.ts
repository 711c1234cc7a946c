/**
 * Validation of CustomResourceDefinitions with kube-apiserver's messages: names,
 * versions, structural schemas, list types, defaults, conversion and CEL rules.
 * Pure functions of a CRD; must not import storage, requests or HTTP.
 *
 * @module
 */
import type { StatusCause } from "../../../core/api/api_error.ts";
import type { UntypedObject } from "../../../core/api/object.ts";
import type { CrdVersion } from "../../../core/crd/kind_definition.ts";
import type { CrdObject } from "../../../core/crd/crd_object.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import {
  label1035Problems,
  subdomainProblems,
} from "../../validation/names.ts";
import { goJson } from "../../validation/go_value.ts";
import { fieldError } from "../../status.ts";
import { approvalCauses } from "./api_approval.ts";
import { ruleChecker } from "../cel/rule_causes.ts";
import { RuleCosts } from "../cel/rule_costs.ts";
import { compileRules } from "../cel/rule_validator.ts";
import { conversionCauses } from "./conversion_rules.ts";
import { defaultCauses } from "./default_rules.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { nameCauses } from "./crd_name_rules.ts";
import { schemaRuleCauses, usesUnsupportedKeyword } from "./schema_rules.ts";
import { structuralCauses } from "./structural_rules.ts";
import {
  columnCauses,
  deprecationCauses,
  selectableFieldCauses,
  subresourceCauses,
} from "./version_rules.ts";

/** Spec of a CRD before validation; any field may be missing. */
type UncheckedSpec = Partial<CrdObject["spec"]> & {
  readonly preserveUnknownFields?: boolean;
  readonly conversion?: Readonly<Record<string, unknown>>;
};

/** Validates a new CRD; returns the violations with kube-apiserver's messages. */
export function createCauses(object: UntypedObject): StatusCause[] {
  const { spec, status } = parts(object);
  const { names } = spec;
  const required = `${names?.plural ?? ""}.${spec.group ?? ""}`;
  const name = object.metadata.name ?? "";
  return [
    ...(name === "" || name === required ? [] : [fieldError.invalid(
      "metadata.name",
      name,
      'must be spec.names.plural+"."+spec.group',
    )]),
    ...specCauses(spec, new Set()),
    ...storedVersionCauses(spec, status?.storedVersions),
    ...approvalCauses(object, undefined),
    ...preserveCauses(spec, undefined),
  ];
}

/** Validates an update of a CRD; returns the violations. */
export function updateCauses(
  object: UntypedObject,
  live: UntypedObject,
): StatusCause[] {
  const { spec, status } = parts(object);
  const old = parts(live);
  const established = old.status?.conditions?.some((condition) =>
    condition.type === "Established" && condition.status === "True"
  );
  const immutable = (field: string, next: unknown, before: unknown) =>
    next === before
      ? []
      : [fieldError.invalid(field, next, "field is immutable")];
  return [
    ...specCauses(spec, unchangedSchemas(spec, old.spec)),
    ...(established
      ? [
        ...immutable("spec.scope", spec.scope, old.spec.scope),
        ...immutable(
          "spec.names.kind",
          spec.names?.kind,
          old.spec.names?.kind,
        ),
      ]
      : []),
    ...immutable("spec.group", spec.group, old.spec.group),
    ...immutable(
      "spec.names.plural",
      spec.names?.plural,
      old.spec.names?.plural,
    ),
    ...storedVersionCauses(spec, status?.storedVersions),
    ...approvalCauses(object, live),
    ...preserveCauses(spec, old.spec),
  ];
}

function parts(
  object: UntypedObject,
): { readonly spec: UncheckedSpec; readonly status: CrdObject["status"] } {
  const { spec, status } = object as unknown as Partial<CrdObject>;
  return { spec: spec ?? {}, status };
}

/** Names of the versions whose schemas do not change in an update. */
function unchangedSchemas(
  spec: UncheckedSpec,
  old: UncheckedSpec,
): ReadonlySet<string> {
  const before = new Map(
    old.versions?.map((version) => [version.name, version]),
  );
  return new Set(
    spec.versions?.filter((version) => {
      const live = before.get(version.name);
      return live && jsonEquals(schemaOf(version), schemaOf(live));
    }).map(({ name }) => name),
  );
}

/**
 * Validates the spec of a CRD.
 *
 * @param unchanged Names of the versions whose schemas were accepted before.
 */
function specCauses(
  spec: UncheckedSpec,
  unchanged: ReadonlySet<string>,
): StatusCause[] {
  const { group = "", scope = "" as string } = spec;
  const versions = spec.versions ?? [];
  const causes: StatusCause[] = [];
  const groupProblems = subdomainProblems(group);
  if (group === "") causes.push(fieldError.required("spec.group"));
  else if (groupProblems.length > 0) {
    causes.push(
      fieldError.invalid("spec.group", group, groupProblems.join(",")),
    );
  } else if (!group.includes(".")) {
    const why = "should be a domain with at least one dot";
    causes.push(fieldError.invalid("spec.group", group, why));
  }
  if (scope === "") causes.push(fieldError.required("spec.scope"));
  else if (scope !== "Cluster" && scope !== "Namespaced") {
    const known = ["Cluster", "Namespaced"];
    causes.push(fieldError.notSupported("spec.scope", scope, known));
  }
  return [
    ...causes,
    ...versionsCauses(spec.versions, unchanged),
    ...nameCauses(spec.names ?? {}),
    ...sharedPartCauses(versions, unchanged),
    ...conversionCauses(spec.conversion),
  ];
}

/** Fields that are equal in all versions; their violations are reported once, for the spec. */
interface SharedFields {
  readonly schema: boolean;
  readonly subresources: boolean;
  readonly columns: boolean;
  readonly selectableFields: boolean;
}

function sharedParts(versions: readonly CrdVersion[]): SharedFields {
  const [first] = versions;
  const same = (part: keyof CrdVersion) =>
    versions.every((version) => jsonEquals(version[part], first?.[part]));
  return {
    schema: same("schema"),
    subresources: same("subresources"),
    columns: same("additionalPrinterColumns"),
    selectableFields: same("selectableFields"),
  };
}

function versionsCauses(
  given: readonly CrdVersion[] | undefined,
  unchanged: ReadonlySet<string>,
): StatusCause[] {
  const versions = given ?? [];
  const shared = sharedParts(versions);
  const causes: StatusCause[] = [];
  const anySchema = shared.schema && schemaOf(versions[0]) !== undefined;
  for (const [index, version] of versions.entries()) {
    if (!anySchema && schemaOf(version) === undefined) {
      causes.push(fieldError.required(
        `spec.versions[${index}].schema.openAPIV3Schema`,
      ));
    }
  }
  for (const [index, version] of versions.entries()) {
    const path = keyPath("spec.versions", index);
    const problems = label1035Problems(version.name ?? "");
    if (problems.length > 0) {
      const field = childPath(path, "name");
      causes.push(
        fieldError.invalid(field, version.name ?? "", problems.join(",")),
      );
    }
    causes.push(...deprecationCauses(version, path));
    if (!shared.schema) {
      const status = version.subresources?.status !== undefined;
      causes.push(...schemaCauses(version, childPath(path, "schema"), {
        status,
        unchanged: unchanged.has(version.name),
      }));
    }
    if (!shared.subresources) causes.push(...subresourceCauses(version, path));
    if (!shared.columns) causes.push(...columnCauses(version, path));
    if (!shared.selectableFields) {
      causes.push(...selectableFieldCauses(version, path));
    }
  }
  const storages = versions.filter(({ storage }) => storage).length;
  const names = new Set(versions.map(({ name }) => name));
  const wrong = (why: string) =>
    causes.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${shownVersions(given)}: ${why}`,
      field: "spec.versions",
    });
  if (names.size < versions.length) wrong("must contain unique version names");
  if (storages !== 1) {
    wrong("must have exactly one version marked as storage version");
  }
  // The first version is reported again, under the deprecated field.
  const first = versions[0]?.name;
  const problems = first === undefined ? [] : label1035Problems(first);
  if (problems.length > 0) {
    const text = problems.join(",");
    causes.push(fieldError.invalid("spec.version", first, text));
  }
  return causes;
}

function sharedPartCauses(
  versions: readonly CrdVersion[],
  unchanged: ReadonlySet<string>,
): StatusCause[] {
  const [first] = versions;
  if (first === undefined) return [];
  const shared = sharedParts(versions);
  const status = versions.some(({ subresources }) =>
    subresources?.status !== undefined
  );
  return [
    ...(shared.schema
      ? schemaCauses(first, "spec.validation", {
        status,
        unchanged: unchanged.has(first.name),
      })
      : []),
    ...(shared.subresources ? subresourceCauses(first, "spec") : []),
    ...(shared.columns ? columnCauses(first, "spec") : []),
    ...(shared.selectableFields ? selectableFieldCauses(first, "spec") : []),
  ];
}

function schemaOf(version: CrdVersion | undefined): OpenApiSchema | undefined {
  return version?.schema?.openAPIV3Schema;
}

/** Keywords allowed at the root of a schema if the status subresource is enabled. */
const ROOT_KEYWORDS: ReadonlySet<string> = new Set([
  "description",
  "type",
  "format",
  "title",
  "maximum",
  "exclusiveMaximum",
  "minimum",
  "exclusiveMinimum",
  "maxLength",
  "minLength",
  "pattern",
  "maxItems",
  "minItems",
  "uniqueItems",
  "multipleOf",
  "required",
  "items",
  "properties",
  "externalDocs",
  "example",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
]);

/**
 * Validates the schema of a version.
 *
 * @param options.status Whether the status subresource is enabled.
 * @param options.unchanged Whether the schema was accepted before.
 */
function schemaCauses(
  version: CrdVersion,
  path: string,
  { status, unchanged }: {
    readonly status: boolean;
    readonly unchanged: boolean;
  },
): StatusCause[] {
  const schema = schemaOf(version);
  if (schema === undefined) return [];
  const schemaPath = childPath(path, "openAPIV3Schema");
  const causes: StatusCause[] = [];
  if (status) causes.push(...rootKeywordCauses(schema, schemaPath));
  if (schema.nullable) {
    const field = childPath(schemaPath, "nullable");
    const why = "nullable cannot be true at the root";
    causes.push(fieldError.forbidden(field, why));
  }
  // Unsupported keywords are reported alone, without further checks.
  const readable = !usesUnsupportedKeyword(schema);
  const structural = readable ? structuralCauses(schema, schemaPath) : [];
  const wrong = readable && structural.length === 0
    ? defaultCauses(schema, schemaPath, compileRules)
    : structural;
  const costs = new RuleCosts(!unchanged);
  const rules = readable && wrong.length === 0
    ? ruleChecker(schema, costs)
    : undefined;
  return [
    ...causes,
    ...wrong,
    ...schemaRuleCauses(schema, schemaPath, rules),
    ...costs.totalCauses(schemaPath),
  ];
}

function rootKeywordCauses(
  schema: OpenApiSchema,
  schemaPath: string,
): StatusCause[] {
  if (schema.type !== "object") {
    return [fieldError.invalid(
      childPath(schemaPath, "type"),
      schema.type ?? "",
      'only "object" is allowed as the type at the root of the schema if the status subresource is enabled',
    )];
  }
  const odd = Object.keys(schema).find((keyword) =>
    !ROOT_KEYWORDS.has(keyword)
  );
  return odd === undefined ? [] : [fieldError.invalid(
    schemaPath,
    schema,
    `only [${
      [...ROOT_KEYWORDS].map(goFieldName).join(" ")
    }] fields are allowed at the root of the schema if the status subresource is enabled`,
  )];
}

function goFieldName(keyword: string): string {
  return keyword.replace(/^x-kubernetes-/, "x-").replace(
    /(?:^|-)(\w)/g,
    (_, letter: string) => letter.toUpperCase(),
  );
}

function storedVersionCauses(
  spec: UncheckedSpec,
  storedVersions: readonly string[] | null | undefined,
): StatusCause[] {
  const stored = storedVersions ?? [];
  const versions = spec.versions ?? [];
  const field = "status.storedVersions";
  const wrong = (value: unknown, why: string, at = field): StatusCause =>
    fieldError.invalid(at, value, why);
  if (stored.length === 0) {
    return [wrong(null, "must have at least one stored version")];
  }
  const known = new Set(versions.map(({ name }) => name));
  return [
    ...versions.filter(({ name, storage }) => storage && !stored.includes(name))
      .map(({ name }) =>
        wrong(stored, `must have the storage version ${name}`)
      ),
    ...stored.flatMap((name, index) =>
      known.has(name) ? [] : [
        wrong(
          name,
          `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
          keyPath(field, index),
        ),
      ]
    ),
  ];
}

function preserveCauses(
  spec: UncheckedSpec,
  live: UncheckedSpec | undefined,
): StatusCause[] {
  if (!spec.preserveUnknownFields || live?.preserveUnknownFields) return [];
  return [fieldError.invalid(
    "spec.preserveUnknownFields",
    true,
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
  )];
}

/**
 * Versions as Go encodes them, without the schemas and other fields that all have
 * in common.
 */
function shownVersions(versions: readonly CrdVersion[] | undefined): string {
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
