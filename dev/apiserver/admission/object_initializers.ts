import { celLibrary } from "../crd/cel/cel_library.ts";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";

/** Open bracket of an expression. */
interface Bracket {
  /** Name of the type of an initializer; undefined for other brackets. */
  readonly type?: string | undefined;
  /** Current field of an initializer. */
  field: string;
}

/** Expression with maps in place of object initializers. */
export interface Rewritten {
  readonly source: string;
  /** Type of the outermost initializer; empty without an initializer. */
  readonly type: string;
  /** Problem of a type that does not fit the field that it initializes. */
  readonly problem?: string | undefined;
}

/** Pattern of a token: text, comment, initializer, name before a colon, bracket or comma. */
const TOKENS =
  /[rRbB]{0,2}(?:"""(?:\\[^]|(?!""")[^])*"""|'''(?:\\[^]|(?!''')[^])*'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\/\/[^\n]*|(?<![\w.])((?:Object|JSONPatch)(?:\s*\.\s*\w+)*)\s*\{|(?:\?\s*)?(?:\b([A-Za-z_]\w*)|`([^`]+)`)\s*:(?!:)|[[({]|[\])}]|,/g;

/**
 * Replaces object initializers, such as `Object.spec{replicas: 1}`, by maps;
 * the CEL library does not support them.
 */
export function rewriteInitializers(expression: string): Rewritten {
  const open: Bracket[] = [];
  let outermost = "";
  let problem: string | undefined;
  const source = expression.replaceAll(
    TOKENS,
    (token: string, name?: string, field?: string, quoted?: string) => {
      const inner = open.at(-1);
      if (name !== undefined) {
        const type = name.replaceAll(/\s/g, "");
        const around = open.findLast((bracket) => bracket.type !== undefined);
        if (around === undefined) outermost ||= type;
        else if (around.type?.startsWith("Object")) {
          const expected = `${around.type}.${around.field}`;
          if (type !== expected) {
            problem ??=
              `unexpected type name "${type}", expected "${expected}", which matches field name path from root Object type`;
          }
        }
        open.push({ type, field: "" });
        return "{";
      }
      const key = field ?? quoted;
      if (key !== undefined) {
        if (inner?.type === undefined) return token;
        inner.field = key;
        return `${JSON.stringify(key)}:`;
      }
      if (/^[[({]$/.test(token)) open.push({ field: "" });
      else if (/^[\])}]$/.test(token)) open.pop();
      return token;
    },
  );
  return { source, type: outermost, problem };
}

/** JSON value of a CEL value; absent optional values are left out. */
export function jsonOf(value: unknown): unknown {
  const { Optional } = celLibrary();
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Optional) {
    return value.hasValue() ? jsonOf(value.value()) : undefined;
  }
  if (Array.isArray(value) || value instanceof Set) {
    return [...value].map(jsonOf);
  }
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return btoa(String.fromCharCode(...value));
  if (value instanceof Map) return objectOf([...value.entries()]);
  return isJsonObject(value) ? objectOf(Object.entries(value)) : value;
}

function objectOf(
  entries: readonly (readonly [unknown, unknown])[],
): JsonObject {
  return Object.fromEntries(
    entries.map(([key, inner]) => [String(key), jsonOf(inner)] as const)
      .filter(([, inner]) => inner !== undefined),
  );
}
