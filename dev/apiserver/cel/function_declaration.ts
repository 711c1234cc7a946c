import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  STRING,
  TIMESTAMP,
  typeOfType,
  UINT,
} from "./cel_type.ts";
import { isMap, Optional, typeNameOf } from "./values.ts";

/** One of the signatures of a function, with what it does. */
export interface Overload {
  /** Signature, which identifies the overload: `size(this string): int`. */
  readonly id: string;
  readonly params: readonly CelType[];
  readonly result: CelType;
  /** Whether the first parameter is the receiver of a method. */
  readonly method: boolean;
  /** Names of the type parameters. */
  readonly typeParams: readonly string[];
  /** Computes the result; an error is returned or thrown. */
  readonly run: (...args: never[]) => unknown;
}

/** Functions by name; the names of qualified functions have dots. */
export type FunctionTable = ReadonlyMap<string, readonly Overload[]>;

/** Functions by signature, in the order in which they are tried. */
export type FunctionDefinitions = Readonly<
  Record<string, (...args: never[]) => unknown>
>;

const TYPES: Readonly<Record<string, CelType>> = {
  bool: BOOL,
  bytes: BYTES,
  double: DOUBLE,
  duration: DURATION,
  dyn: DYN,
  int: INT,
  null: NULL,
  string: STRING,
  timestamp: TIMESTAMP,
  uint: UINT,
};

/**
 * Table of functions.
 *
 * @param definitions Functions by signature, such as
 * `indexOf(this list<A>, A): int`: `this` marks the receiver of a method, a
 * single letter is a type parameter.
 * @param types Further types by their names in signatures.
 */
export function functionTable(
  definitions: FunctionDefinitions,
  types: Readonly<Record<string, CelType>> = {},
): FunctionTable {
  const table = new Map<string, Overload[]>();
  for (const [signature, run] of Object.entries(definitions)) {
    const [, name = "", params = "", result = ""] =
      /^([^(]+)\((.*)\): (.+)$/.exec(signature) ?? [];
    const method = params.startsWith("this ");
    const reader = new TypeReader(types);
    const parsed = reader.list(params.replace(/^this /, ""));
    const overload: Overload = {
      id: signature,
      params: parsed,
      result: reader.type(result),
      method,
      typeParams: [...reader.params],
      run,
    };
    table.set(name, [...table.get(name) ?? [], overload]);
  }
  return table;
}

/** Joins tables; overloads of one function are tried in the order of the tables. */
export function joinTables(...tables: readonly FunctionTable[]): FunctionTable {
  const all = new Map<string, readonly Overload[]>();
  for (const table of tables) {
    for (const [name, overloads] of table) {
      all.set(name, [...all.get(name) ?? [], ...overloads]);
    }
  }
  return all;
}

/** Reader of the types in signatures. */
class TypeReader {
  readonly params: Set<string> = new Set();
  readonly #types: Readonly<Record<string, CelType>>;

  constructor(types: Readonly<Record<string, CelType>>) {
    this.#types = types;
  }

  list(text: string): CelType[] {
    return splitTypes(text).map((one) => this.type(one));
  }

  type(text: string): CelType {
    if (/^[A-Z]$/.test(text)) {
      this.params.add(text);
      return { kind: "param", name: text, params: [] };
    }
    const [, name = text, inner] = /^([\w.]+)<(.*)>$/.exec(text) ?? [];
    const params = inner === undefined ? [] : this.list(inner);
    const [first = DYN, second = DYN] = params;
    switch (name) {
      case "list":
        return listOf(first);
      case "map":
        return mapOf(first, second);
      case "optional":
        return optionalOf(first);
      case "type":
        return typeOfType(params[0]);
    }
    const known = this.#types[name] ?? TYPES[name];
    if (known === undefined) {
      throw new TypeError(
        `Cannot declare a function: no type is named ${name}`,
      );
    }
    return known;
  }
}

/** Splits a list of types at the commas outside of angle brackets. */
function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i <= text.length; i++) {
    const character = text[i];
    if (character === "<") depth++;
    else if (character === ">") depth--;
    else if (character === undefined || (character === "," && depth === 0)) {
      parts.push(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  return parts.filter((part) => part !== "");
}

/** Whether a value can be an argument of a parameter. */
export function accepts(
  { kind, name, params }: CelType,
  value: unknown,
): boolean {
  switch (kind) {
    case "dyn":
    case "param":
      return true;
    case "list":
      return Array.isArray(value) &&
        (value.length === 0 || accepts(params[0] ?? DYN, value[0]));
    case "map":
      return isMap(value);
    case "opaque":
      return value instanceof Optional
        ? name === "optional_type"
        : typeNameOf(value) === name;
    default:
      return typeNameOf(value) === name;
  }
}
