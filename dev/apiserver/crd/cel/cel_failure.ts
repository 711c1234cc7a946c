/** Error of a CEL function, with cel-go's message. */
export class CelFailure extends Error {
  override readonly name = "CelFailure";
}

/** Name of the CEL type of a value, as in messages. */
export function celTypeName(value: unknown): string {
  switch (typeof value) {
    case "bigint":
      return "int";
    case "number":
      return "double";
    case "boolean":
      return "bool";
    case "string":
      return "string";
  }
  if (value === null || value === undefined) return "null_type";
  if (Array.isArray(value) || value instanceof Set) return "list";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Date) return "google.protobuf.Timestamp";
  return "map";
}
