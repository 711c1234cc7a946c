import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import type {
  CrdVersion,
  KindVersion,
  PrinterColumn,
  ScaleFields,
  ValidationRule,
} from "./kind_definition.ts";
import { structuralSchemaOf } from "./structural_schema.ts";

export interface CrdVersionContext {
  readonly kind: string;
  readonly storage: boolean;
}

/** Field path in printer columns, selectable fields and the scale subresource. */
const SIMPLE_PATH_REGEXP = /^(?:\.[A-Za-z_][\w-]*)+$/;

const COLUMN_TYPES: ReadonlySet<string> = new Set([
  "integer",
  "number",
  "string",
  "boolean",
  "date",
]);

const COLUMN_RULES: OptionRules<PrinterColumn> = {
  name: "string?",
  type: "any?",
  jsonPath: "any?",
  description: "string?",
  format: "string?",
  priority: "size?",
};
const SCALE_RULES: OptionRules<ScaleFields> = {
  specReplicasPath: "string",
  statusReplicasPath: "string",
  labelSelectorPath: "string?",
};
const RULE_RULES: OptionRules<ValidationRule> = {
  rule: "name",
  message: "string?",
  messageExpression: "string?",
  reason: [
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
    undefined,
  ],
  fieldPath: "string?",
  optionalOldSelf: "boolean?",
};

/** Age column, which kubectl leaves out when there are other columns. */
const AGE_COLUMN: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
};

/**
 * Converts a version of a kind into its form in a CustomResourceDefinition.
 *
 * @throws {TypeError} If a schema, a path or a column is not allowed in a
 * CustomResourceDefinition.
 */
export function crdVersion(
  name: string,
  version: KindVersion,
  { kind, storage }: CrdVersionContext,
): CrdVersion {
  const { served = true, deprecated = false } = version;
  const subject = `${kind} ${name}`;
  if (typeof deprecated !== "string") {
    checkOption(deprecated, "boolean", {
      name: "deprecated",
      subject: `the kind ${subject}`,
    });
  }
  const { status, scale, selectableFields = [] } = version;
  if (scale !== undefined) {
    checkOptions(scale, SCALE_RULES, `the kind ${subject}, scale`);
  }
  for (const rule of version.validations ?? []) {
    checkOptions(rule, RULE_RULES, `the kind ${subject}, validations`);
  }
  for (const [option, path] of Object.entries(scale ?? {})) {
    if (path === undefined) continue;
    checkPath(subject, `scale.${option}`, path);
  }
  for (const path of selectableFields) {
    checkPath(subject, "selectableFields", path);
  }
  return Object.freeze({
    name,
    served,
    storage,
    ...deprecated !== false && { deprecated: true },
    ...typeof deprecated === "string" && { deprecationWarning: deprecated },
    schema: { openAPIV3Schema: objectSchema(version, subject) },
    ...(status || scale) &&
      { subresources: { ...status && { status: {} }, ...scale && { scale } } },
    ...printerColumns(version, subject),
    ...selectableFields.length > 0 && {
      selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })),
    },
  });
}

function objectSchema(version: KindVersion, subject: string): OpenApiSchema {
  const spec = partSchema(version, "spec", subject);
  const { description, validations, status } = version;
  return {
    type: "object",
    ...description !== undefined && { description },
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec,
      ...status !== undefined &&
        { status: partSchema(version, "status", subject) },
    },
    ...spec.default === undefined && { required: ["spec"] },
    ...validations?.length && { "x-kubernetes-validations": validations },
  };
}

function partSchema(
  version: KindVersion,
  part: "spec" | "status",
  subject: string,
): OpenApiSchema {
  const schema = version[part];
  if (schema === undefined) {
    throw new TypeError(
      `Cannot define the kind ${subject}: '${part}' must be a schema: received ${schema}`,
    );
  }
  const structural = structuralSchemaOf(schema, `${subject}: ${part}`);
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
  subject: string,
): Pick<CrdVersion, "additionalPrinterColumns"> {
  if (printerColumns.length === 0) return {};
  for (const column of printerColumns) {
    checkOptions(column, COLUMN_RULES, `the kind ${subject}, printerColumns`);
    const { name, type, jsonPath } = column;
    if (
      !name || !COLUMN_TYPES.has(type) || typeof jsonPath !== "string" ||
      !jsonPath.startsWith(".")
    ) {
      throw new TypeError(
        `Cannot define the kind ${subject}: a printer column needs a name, a type of ${
          [...COLUMN_TYPES].join(", ")
        }, and a path that begins with a dot: received ${
          JSON.stringify({ name, type, jsonPath })
        }`,
      );
    }
  }
  const hasAge = printerColumns.some(({ jsonPath }) =>
    jsonPath === AGE_COLUMN.jsonPath
  );
  return {
    additionalPrinterColumns: hasAge
      ? [...printerColumns]
      : [...printerColumns, AGE_COLUMN],
  };
}

function checkPath(subject: string, option: string, path: string): void {
  if (typeof path === "string" && SIMPLE_PATH_REGEXP.test(path)) return;
  throw new TypeError(
    `Cannot define the kind ${subject}: '${option}' must be a path such as .spec.replicas: received ${
      JSON.stringify(path)
    }`,
  );
}
