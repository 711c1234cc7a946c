/** JSON object. */
export interface JsonObject {
  /** Value of a field. */
  [name: string]: unknown;
}

/** Whether a value is a JSON object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two JSON values are equal, regardless of the order of fields. */
export function jsonEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length &&
      a.every((item, index) => jsonEquals(item, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length &&
    names.every((name) =>
      Object.hasOwn(b, name) && jsonEquals(a[name], b[name])
    );
}

/** Formats a value as Go's `%v`, which messages of kube-apiserver contain. */
export function goText(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (isJsonObject(value)) {
    const fields = Object.keys(value).sort()
      .map((name) => `${name}:${goText(value[name])}`);
    return `map[${fields.join(" ")}]`;
  }
  return String(value);
}

/** Name of the Go type that a JSON value is decoded into. */
export function goTypeName(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (isJsonObject(value)) return "map[string]interface {}";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  return Number.isInteger(value) ? "int64" : "float64";
}

/** Formats a value as Go's `%#v`. */
export function goLiteral(value: unknown): string {
  if (value === null || value === undefined) return "interface {}(nil)";
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) {
    return `[]interface {}{${value.map(goLiteral).join(", ")}}`;
  }
  if (isJsonObject(value)) {
    const fields = Object.keys(value).sort()
      .map((name) => `${JSON.stringify(name)}:${goLiteral(value[name])}`);
    return `map[string]interface {}{${fields.join(", ")}}`;
  }
  return String(value);
}
