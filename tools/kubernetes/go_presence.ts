import { globSync, readFileSync } from "node:fs";
import type { GoFields } from "./kubernetes_data.ts";

/** A field of a struct in Go. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly omitEmpty: boolean;
  readonly omitZero: boolean;
}

const STRUCT_REGEXP = /^type (\w+) struct \{\n([^]*?)^\}/gm;
const NAMED_REGEXP = /^type (\w+) (?:=? ?)([\w.[\]*]+)/gm;
const FIELD_REGEXP =
  /^\t(?:(\w+)[ \t]+)?([^\s`]+)[ \t]+`[^`\n]*json:"([^"]*)"/gm;

/**
 * What OpenAPI does not tell of the fields of each definition, by the Go sources
 * of their packages: folders by the prefix of the definitions' names.
 */
export function readGoFields(
  folders: Readonly<Record<string, string>>,
  definitions: Readonly<
    Record<string, { readonly properties?: object | undefined }>
  >,
): Record<string, GoFields> {
  const structs = new Map<string, readonly Field[]>();
  const named = new Map<string, string>();
  for (const [prefix, folder] of Object.entries(folders)) {
    for (const file of globSync(`${folder}/*.go`)) {
      if (/_test\.go$|zz_|generated/.test(file)) continue;
      const text = readFileSync(file, "utf8");
      for (const [, name = "", body = ""] of text.matchAll(STRUCT_REGEXP)) {
        structs.set(`${prefix}.${name}`, fieldsOf(body));
      }
      for (const [, name = "", type = ""] of text.matchAll(NAMED_REGEXP)) {
        if (type !== "struct") named.set(`${prefix}.${name}`, type);
      }
    }
  }
  const result: Record<string, GoFields> = {};
  for (const [name, { properties = {} }] of Object.entries(definitions)) {
    const prefix = name.slice(0, name.lastIndexOf("."));
    const fields: Record<keyof GoFields, string[]> = {
      always: [],
      nullPointer: [],
      pointer: [],
      struct: [],
    };
    for (const field of flattened(name, structs)) {
      if (!(field.name in properties)) continue;
      const kind = kindOf(field.type, { prefix, structs, named });
      if (kind === "pointer") {
        fields[field.omitEmpty ? "pointer" : "nullPointer"].push(field.name);
      } else if (kind === "struct") {
        if (!field.omitZero) fields.struct.push(field.name);
      } else if (!field.omitEmpty) fields.always.push(field.name);
    }
    const kept = Object.entries(fields).filter(([, names]) => names.length > 0)
      .map(([key, names]) => [key, names.toSorted()]);
    if (kept.length > 0) result[name] = Object.fromEntries(kept);
  }
  return result;
}

function fieldsOf(body: string): readonly Field[] {
  return [...body.matchAll(FIELD_REGEXP)].map(([, , type = "", tag = ""]) => {
    const [name = "", ...options] = tag.split(",");
    return {
      name,
      type,
      omitEmpty: options.includes("omitempty"),
      omitZero: options.includes("omitzero"),
    };
  });
}

/** The fields of a struct with those of the structs that it embeds. */
function flattened(
  name: string,
  structs: ReadonlyMap<string, readonly Field[]>,
): readonly Field[] {
  const prefix = name.slice(0, name.lastIndexOf("."));
  return (structs.get(name) ?? []).flatMap((field) => {
    const embedded = `${prefix}.${field.type}`;
    return field.name === "" && structs.has(embedded)
      ? flattened(embedded, structs)
      : [field];
  });
}

/** Whether a type is a pointer, a struct or neither. */
function kindOf(
  type: string,
  known: {
    readonly prefix: string;
    readonly structs: ReadonlyMap<string, readonly Field[]>;
    readonly named: ReadonlyMap<string, string>;
  },
): "pointer" | "struct" | "other" {
  if (type.startsWith("*")) return "pointer";
  if (/^(\[|map\[)/.test(type)) return "other";
  const own = `${known.prefix}.${type}`;
  if (known.structs.has(own)) return "struct";
  const alias = known.named.get(own);
  if (alias !== undefined) return kindOf(alias, known);
  // Types of other packages have names that only one of them has.
  const [, name] = type.split(".");
  if (name === undefined) return "other";
  return [...known.structs.keys()].some((one) => one.endsWith(`.${name}`))
    ? "struct"
    : "other";
}
