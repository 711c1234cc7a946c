import type { UntypedObject } from "../../core/api/object.ts";
import type { CrdColumn, CrdVersion } from "../../core/crd/crd_manifest.ts";
import { goNumber } from "../go_value.ts";
import { humanAge } from "../human_duration.ts";
import type { TableColumn } from "../registry.ts";
import { compileJsonPath, type JsonPath } from "./json_path.ts";

/** The columns of a Table, and what stands in them. */
export interface PrinterColumns {
  readonly columns: readonly TableColumn[];
  cells(object: UntypedObject, now: number): readonly unknown[];
}

const NAME_COLUMN: TableColumn = {
  name: "Name",
  type: "string",
  format: "name",
  description: "The name of the object, unique within its namespace.",
  priority: 0,
};

/** What is shown where a definition names no columns. */
const DEFAULT_COLUMNS: readonly CrdColumn[] = [{
  name: "Age",
  type: "date",
  description: "When the server made the object.",
  jsonPath: ".metadata.creationTimestamp",
}];

/**
 * The columns that a version of a custom resource shows, the name first. From a
 * column on whose path cannot be read, none is shown, as on a real server.
 */
export function printerColumns(
  { additionalPrinterColumns }: Pick<CrdVersion, "additionalPrinterColumns">,
): PrinterColumns {
  const readable: { readonly path: JsonPath; readonly type: string }[] = [];
  const columns = [NAME_COLUMN];
  const asked = additionalPrinterColumns?.length
    ? additionalPrinterColumns
    : DEFAULT_COLUMNS;
  for (const { name, type, jsonPath, description, ...rest } of asked) {
    const path = readPath(jsonPath);
    if (path === undefined) break;
    readable.push({ path, type });
    columns.push({
      name,
      type,
      format: rest.format ?? "",
      description: description ||
        `Custom resource definition column (in JSONPath format): ${jsonPath}`,
      priority: rest.priority ?? 0,
    });
  }
  return {
    columns,
    cells: (object, now) => [
      object.metadata.name,
      ...readable.map(({ path, type }) =>
        cell(path.find(object)[0], type, now)
      ),
    ],
  };
}

function readPath(jsonPath: string): JsonPath | undefined {
  try {
    return compileJsonPath(jsonPath);
  } catch {
    return undefined;
  }
}

/** A value in a column of a type; null when it is not of that type. */
function cell(value: unknown, type: string, now: number): unknown {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "string":
      return cellText(value);
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? humanAge(value, now) : null;
    default:
      return null;
  }
}

function cellText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? goNumber(value) : JSON.stringify(value);
}
