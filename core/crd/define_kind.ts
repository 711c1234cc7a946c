import type { WrittenAs } from "../api/object.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import type {
  ConversionStep,
  CrdVersion,
  DefinedKind,
  DefinedObject,
  KindDefinition,
  KindVersion,
  OtherVersion,
  OtherVersions,
  PrinterColumn,
  ScaleFields,
} from "./kind_definition.ts";
import { kindNames } from "./kind_names.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import { checkedRules } from "./rule_checks.ts";
import type { StandardSchema } from "./standard_schema.ts";
import { structuralSchemaOf } from "./structural_schema.ts";

/** Field path in selectable fields and the scale subresource. */
const SIMPLE_PATH_REGEXP = /^(?:\.[A-Za-z_][\w-]*)+$/;

const COLUMN_RULES: OptionRules<PrinterColumn> = {
  name: "name",
  type: ["integer", "number", "string", "boolean", "date"],
  jsonPath: {
    type: "string",
    check(path, subject) {
      if (path.startsWith(".")) return;
      throw new TypeError(
        `Cannot define ${subject}: 'jsonPath' must begin with a dot: received "${path}"`,
      );
    },
  },
  description: "string?",
  format: "string?",
  priority: "size?",
};
const SCALE_RULES: OptionRules<ScaleFields> = {
  specReplicasPath: { type: "string", check: checkPath },
  statusReplicasPath: { type: "string", check: checkPath },
  labelSelectorPath: { type: "string?", check: checkPath },
};

/** Option table of {@linkcode KindVersion}; `partSchema` checks the schemas. */
const VERSION_RULES: OptionRules<KindVersion> = {
  spec: "any?",
  status: "any?",
  description: "string?",
  printerColumns: { type: "array?", options: COLUMN_RULES },
  selectableFields: {
    type: "strings?",
    check: (paths, subject, name) =>
      paths.forEach((path) => checkPath(path, subject, name)),
  },
  scale: { type: "object?", options: SCALE_RULES },
  rules: "array?",
  served: "boolean?",
  deprecated: {
    type: "any?",
    check: (value, subject, name) =>
      typeof value === "string" ||
      checkOption(value, "boolean", { name, subject }),
  },
};

/** Option table of {@linkcode OtherVersion}. */
const OTHER_VERSION_RULES: OptionRules<OtherVersion> = {
  ...VERSION_RULES,
  name: "name",
  up: "function?",
  down: "function?",
};

/** Option table of {@linkcode KindDefinition}; `kindNames` checks more. */
const KIND_RULES: OptionRules<KindDefinition> = {
  ...VERSION_RULES,
  group: "any?",
  version: "any?",
  kind: "any?",
  plural: "any?",
  singular: "any?",
  listKind: "string?",
  shortNames: "strings?",
  categories: "strings?",
  scope: ["Namespaced", "Cluster", undefined],
  versions: "array?",
  storageVersion: "string?",
  labels: "object?",
  annotations: "object?",
};

/**
 * Defines a custom kind by its names and the schemas of its objects, written with
 * zod or any other library that implements Standard Schema.
 *
 * The result is a kind like any other: clients, informers and controllers accept
 * it, and their objects have the types of the schemas. It also contains its
 * CustomResourceDefinition, which {@linkcode crdManifest} returns and
 * {@linkcode installCrd} applies to a server.
 *
 * @param definition The names and schemas.
 * @throws {TypeError} If the API server would refuse a name, an option is unknown
 * or of the wrong type, or a schema cannot be expressed in a
 * CustomResourceDefinition; the error names the path.
 * @throws {RangeError} If the scope, the type of a column or the reason of a
 * validation does not exist.
 *
 * @example A kind with a spec and a status
 * ```ts
 * import { defineKind } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const WebPage = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "WebPage",
 *   spec: z.object({ html: z.string(), exposed: z.boolean().default(false) }),
 *   status: z.object({ ready: z.boolean() }).partial(),
 * });
 * ```
 */
export function defineKind<
  const D extends Omit<KindDefinition, "versions">,
  const Specs extends readonly StandardSchema[],
  Spec extends StandardSchema,
>(
  definition: D & {
    readonly spec: Spec;
    readonly versions?: OtherVersions<Specs, Spec> | undefined;
  },
):
  & DefinedKind<DefinedObject<D>>
  & WrittenAs<DefinedObject<D, "input">> {
  checkOption(definition, "object", { name: "definition", subject: "a kind" });
  const { group, version, kind, scope = "Namespaced" } = definition;
  checkOptions(
    definition as KindDefinition,
    KIND_RULES,
    `the kind ${String(kind)}`,
  );
  const names = kindNames(definition);
  const checkedInCode: Record<string, readonly string[]> = {};
  return Object.freeze({
    group,
    version,
    kind,
    scope,
    ...names,
    labels: Object.freeze({ ...definition.labels }),
    annotations: Object.freeze({ ...definition.annotations }),
    versions: versionsOf(definition as KindDefinition, checkedInCode),
    checkedInCode,
    rules: rulesOf(definition as KindDefinition),
    conversion: conversionOf(definition as KindDefinition),
    specSchema: definition.spec,
    statusSchema: definition.status,
  });
}

/** Versions of a definition: the version of the program, then the others. */
function versionsOf(
  definition: KindDefinition,
  checkedInCode: Record<string, readonly string[]>,
): readonly CrdVersion[] {
  const { kind, version, versions = [] } = definition;
  const storage = definition.storageVersion ?? version;
  for (const other of versions) {
    checkOptions(
      other,
      OTHER_VERSION_RULES,
      `the kind ${kind}, version ${other?.name}`,
    );
    kindNames({ ...definition, version: other.name });
  }
  const names = [version, ...versions.map(({ name }) => name)];
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw new TypeError(
      `Cannot define the kind ${kind}: 'versions' are those besides '${version}', each once: received "${twice}" again`,
    );
  }
  if (!names.includes(storage)) {
    throw new TypeError(
      `Cannot define the kind ${kind}: 'storageVersion' must be one of its versions: received "${storage}"`,
    );
  }
  const all = [{ name: version, content: definition as KindVersion }].concat(
    versions.map((other) => ({ name: other.name, content: other })),
  );
  return Object.freeze(all.map(({ name, content }) => {
    const paths = new Set<string>();
    const context = { kind, storage: name === storage, checkedInCode: paths };
    const made = crdVersion(name, content, context);
    // Paths begin with the version.
    if (paths.size > 0) {
      checkedInCode[name] = Array.from(
        paths,
        (path) => path.slice(`${kind} ${name}: `.length),
      );
    }
    return made;
  }));
}

function rulesOf(definition: KindDefinition): DefinedKind["rules"] {
  const { version, versions = [] } = definition;
  const all = [{ name: version, rules: definition.rules }, ...versions];
  return Object.freeze(
    Object.fromEntries(all.map(({ name, rules = [] }) => [name, rules])),
  );
}

/** Conversion between the versions; undefined if no version has functions. */
function conversionOf(
  { kind, version, versions = [] }: KindDefinition,
): DefinedKind["conversion"] {
  const steps = versions.map(({ name, up, down }) => {
    if (up === undefined && down === undefined) return undefined;
    if (up !== undefined && down !== undefined) {
      return Object.freeze({ up, down }) as ConversionStep;
    }
    throw new TypeError(
      `Cannot define the kind ${kind}, version ${name}: 'up' and 'down' belong together, since objects are read and written in both versions: received only '${
        up === undefined ? "down" : "up"
      }'`,
    );
  });
  if (steps.every((step) => step === undefined)) return undefined;
  const names = [...versions.map(({ name }) => name), version];
  return Object.freeze({
    versions: Object.freeze(names),
    steps: Object.freeze(steps),
  });
}

interface CrdVersionContext {
  readonly kind: string;
  readonly storage: boolean;
  /** Paths of the fields with checks in code, which the conversion adds. */
  readonly checkedInCode: Set<string>;
}

/** Age column, which kubectl leaves out when there are other columns. */
const AGE_COLUMN: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
};

/**
 * Converts a version of a kind into its form in a CustomResourceDefinition.
 *
 * @throws {TypeError} If a schema is not allowed in a CustomResourceDefinition.
 */
function crdVersion(
  name: string,
  version: KindVersion,
  { kind, storage, checkedInCode }: CrdVersionContext,
): CrdVersion {
  const { served = true, deprecated = false } = version;
  const { status, scale, selectableFields = [] } = version;
  const context = { subject: `${kind} ${name}`, checkedInCode };
  return Object.freeze({
    name,
    served,
    storage,
    ...deprecated !== false && { deprecated: true },
    ...typeof deprecated === "string" && { deprecationWarning: deprecated },
    schema: { openAPIV3Schema: objectSchema(version, context) },
    ...(status || scale) &&
      { subresources: { ...status && { status: {} }, ...scale && { scale } } },
    ...printerColumns(version),
    ...selectableFields.length > 0 && {
      selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })),
    },
  });
}

/** Place of the schemas of a version. */
interface SchemaPlace extends Pick<CrdVersionContext, "checkedInCode"> {
  /** Kind and version, for errors. */
  readonly subject: string;
}

function objectSchema(version: KindVersion, place: SchemaPlace): OpenApiSchema {
  const spec = partSchema(version, "spec", place);
  const { description, rules = [], status } = version;
  const schema: OpenApiSchema = {
    type: "object",
    ...description !== undefined && { description },
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec,
      ...status !== undefined &&
        { status: partSchema(version, "status", place) },
    },
    ...spec.default === undefined && { required: ["spec"] },
  };
  const sent = checkedRules(rules, schema, place.subject);
  return sent.length === 0
    ? schema
    : { ...schema, "x-kubernetes-validations": sent };
}

function partSchema(
  version: KindVersion,
  part: "spec" | "status",
  { subject, checkedInCode }: SchemaPlace,
): OpenApiSchema {
  const schema = version[part];
  if (schema === undefined) {
    throw new TypeError(
      `Cannot define the kind ${subject}: '${part}' must be a schema: received ${schema}`,
    );
  }
  const structural = structuralSchemaOf(
    schema,
    `${subject}: ${part}`,
    checkedInCode,
  );
  if (structural.type !== "object") {
    throw new TypeError(
      `Cannot define the kind ${subject}: '${part}' must be a schema of an object: received one of ${
        structural.type ?? "any value"
      }`,
    );
  }
  return structural;
}

function printerColumns(
  { printerColumns = [] }: KindVersion,
): Pick<CrdVersion, "additionalPrinterColumns"> {
  if (printerColumns.length === 0) return {};
  const hasAge = printerColumns.some(({ jsonPath }) =>
    jsonPath === AGE_COLUMN.jsonPath
  );
  const age = hasAge ? [] : [AGE_COLUMN];
  return { additionalPrinterColumns: [...printerColumns, ...age] };
}

function checkPath(path: string, subject: string, name: string): void {
  if (SIMPLE_PATH_REGEXP.test(path)) return;
  throw new TypeError(
    `Cannot define ${subject}: '${name}' must be a path such as .spec.replicas: received "${path}"`,
  );
}
