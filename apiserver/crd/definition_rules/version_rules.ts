import type { StatusCause } from "../../../core/api/api_error.ts";
import type { CrdVersion } from "../../../core/crd/kind_definition.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { followSchemaPath } from "../schema/schema_path.ts";

const { required, invalid, duplicate, tooMany } = fieldError;

const COLUMN_TYPES: readonly string[] = [
  "boolean",
  "date",
  "integer",
  "number",
  "string",
];

const COLUMN_FORMATS: readonly string[] = [
  "byte",
  "date",
  "date-time",
  "double",
  "float",
  "int32",
  "int64",
  "password",
];

const MAX_SELECTABLE_FIELDS = 8;
const MAX_WARNING_CHARS = 256;

/** Validates the deprecation of a version; returns the violations. */
export function deprecationCauses(
  { deprecated, deprecationWarning: text }: CrdVersion,
  path: string,
): StatusCause[] {
  if (text === undefined) return [];
  const problems: string[] = [];
  if (!deprecated) problems.push("can only be set for deprecated versions");
  else {
    if (text.length > MAX_WARNING_CHARS) {
      problems.push("must be <= 256 characters long");
    }
    if (text === "") problems.push("must not be an empty string");
    const odd = text.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u);
    if (odd >= 0) {
      problems.push(
        `must only contain printable UTF-8 characters; non-printable character found at index ${odd}`,
      );
    }
  }
  const field = childPath(path, "deprecationWarning");
  return problems.map((problem) => invalid(field, text, problem));
}

/** Validates the paths of the scale subresource; returns the violations. */
export function subresourceCauses(
  { subresources }: CrdVersion,
  path: string,
): StatusCause[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const base = childPath(path, "subresources.scale");
  const check = (
    name: keyof typeof scale,
    under: readonly string[],
    words: string,
  ) => {
    const field = childPath(base, name);
    const value = scale[name] ?? "";
    if (value === "") {
      return name === "labelSelectorPath" ? [] : [required(field)];
    }
    const simple = simplePathCauses(value, field);
    if (simple.length > 0) return simple;
    return under.some((prefix) => value.startsWith(prefix))
      ? []
      : [invalid(field, value, `should be a json path under ${words}`)];
  };
  return [
    ...check("specReplicasPath", [".spec."], ".spec"),
    ...check("statusReplicasPath", [".status."], ".status"),
    ...check(
      "labelSelectorPath",
      [".spec.", ".status."],
      "either .spec or .status",
    ),
  ];
}

/** Validates the printer columns of a version; returns the violations. */
export function columnCauses(
  { additionalPrinterColumns = [] }: CrdVersion,
  path: string,
): StatusCause[] {
  return additionalPrinterColumns.flatMap((column, index) => {
    const base = keyPath(childPath(path, "additionalPrinterColumns"), index);
    const { name = "", type = "", format = "", jsonPath = "" } = column;
    const causes: StatusCause[] = [];
    const types = `must be one of ${COLUMN_TYPES.join(",")}`;
    if (name === "") causes.push(required(childPath(base, "name")));
    if (type === "") causes.push(required(childPath(base, "type"), types));
    else if (!COLUMN_TYPES.includes(type)) {
      causes.push(invalid(childPath(base, "type"), type, types));
    }
    if (format !== "" && !COLUMN_FORMATS.includes(format)) {
      const why = `must be one of ${COLUMN_FORMATS.join(",")}`;
      causes.push(invalid(childPath(base, "format"), format, why));
    }
    const field = childPath(base, "JSONPath");
    return [
      ...causes,
      ...(jsonPath === ""
        ? [required(field)]
        : simplePathCauses(jsonPath, field)),
    ];
  });
}

function simplePathCauses(text: string, field: string): StatusCause[] {
  return text.startsWith(".")
    ? []
    : [invalid(field, text, "must be a simple json path starting with .")];
}

/** Validates the selectable fields of a version; returns the violations. */
export function selectableFieldCauses(
  { selectableFields = [], schema }: CrdVersion,
  path: string,
): StatusCause[] {
  const base = childPath(path, "selectableFields");
  const seen = new Set<string>();
  const causes: StatusCause[] = [];
  for (const [index, { jsonPath = "" }] of selectableFields.entries()) {
    const field = childPath(keyPath(base, index), "jsonPath");
    if (jsonPath === "") {
      causes.push(required(field));
      continue;
    }
    const selected = followSchemaPath(jsonPath, schema?.openAPIV3Schema ?? {}, {
      brackets: false,
    });
    if (typeof selected === "string") {
      causes.push(invalid(field, jsonPath, `is an invalid path: ${selected}`));
      continue;
    }
    if (/^metadata(?:\.|$)/.test(selected.path)) {
      const why = "must not point to fields in metadata";
      causes.push(invalid(field, jsonPath, why));
    }
    if (
      !["string", "boolean", "integer"].includes(selected.schema.type ?? "")
    ) {
      causes.push(invalid(
        field,
        jsonPath,
        "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
      ));
    }
    if (seen.has(selected.path)) causes.push(duplicate(field, jsonPath));
    seen.add(selected.path);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) {
    causes.push(tooMany(base, seen.size, MAX_SELECTABLE_FIELDS));
  }
  return causes;
}
