import type { UntypedObject } from "@coracle/operator/client";
import type { CrdVersion } from "@coracle/operator/crd";
import type { PrinterColumn } from "@coracle/operator/internal";
import { goJson, goNumber } from "../validation/go_value.ts";
import { humanAge } from "../human_duration.ts";
import type { TableColumn } from "../registry.ts";
import { compileJsonPath, type JsonPath } from "./json_path.ts";
import { isNumber } from "../exact_json.ts";

/** Columns of a Table with the function that returns the cells of an object. */
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

/** Columns of a CRD that declares none. */
const DEFAULT_COLUMNS: readonly PrinterColumn[] = [{
  name: "Age",
  type: "date",
  description: "Creation time of the object.",
  jsonPath: ".metadata.creationTimestamp",
}];

/**
 * Table columns of a version of a custom resource, beginning with the name. As in
 * kube-apiserver, a column with an invalid path hides itself and all later ones.
 */
export function printerColumns(
  { additionalPrinterColumns }: Pick<CrdVersion, "additionalPrinterColumns">,
): PrinterColumns {
  const readable: { readonly path: JsonPath; readonly type: string }[] = [];
  const columns = [NAME_COLUMN];
  const declared = additionalPrinterColumns?.length
    ? additionalPrinterColumns
    : DEFAULT_COLUMNS;
  for (const { name, type, jsonPath, description, ...rest } of declared) {
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

/** Cell for a value in a column of the given type; null if the value has another type. */
function cell(value: unknown, type: string, now: number): unknown {
  if (value === undefined) return null;
  if (value === null) return type === "string" ? "<no value>" : null;
  switch (type) {
    case "string":
      return cellText(value);
    case "integer":
      if (typeof value === "number") return truncated(value);
      return typeof value === "bigint" ? value : null;
    case "number":
      return isNumber(value) ? Number(value) : null;
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
  return typeof value === "number" ? goNumber(value) : goJson(value);
}

/** Integer of a double as Go converts it: the least one of 64 bits if it is too large. */
function truncated(value: number): number | bigint {
  return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2n ** 63n);
}
