/** A function of CEL failed; its message is cel-go's. */
export class CelFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = "CelFailure";
  }
}

/** The name of a value's type, as CEL's messages have it. */
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
