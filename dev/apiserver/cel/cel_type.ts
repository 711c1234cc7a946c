/** Kind of a type. */
export type TypeKind =
  | "dyn"
  | "error"
  | "null"
  | "bool"
  | "int"
  | "uint"
  | "double"
  | "string"
  | "bytes"
  | "duration"
  | "timestamp"
  | "list"
  | "map"
  | "type"
  /** Type that functions alone can use, such as `optional_type`. */
  | "opaque"
  /** Message with fields. */
  | "struct"
  /** Type parameter of a function. */
  | "param";

/** Type of an expression. */
export interface CelType {
  readonly kind: TypeKind;
  /** Name, which identifies a type together with its kind and parameters. */
  readonly name: string;
  /** Types of the items of a list, of the keys and values of a map, and so on. */
  readonly params: readonly CelType[];
  /**
   * Type of a field of a message; undefined if none exists. Absent for
   * messages whose fields are not accessible.
   */
  readonly field?: ((name: string) => CelType | undefined) | undefined;
  /** Names of the fields of a message, where they are known. */
  readonly fieldNames?: readonly string[] | undefined;
}

const NONE: readonly CelType[] = [];

function simple(kind: TypeKind, name: string = kind): CelType {
  return { kind, name, params: NONE };
}

export const DYN: CelType = simple("dyn");
export const ERROR: CelType = simple("error", "!error!");
export const NULL: CelType = simple("null", "null_type");
export const BOOL: CelType = simple("bool");
export const INT: CelType = simple("int");
export const UINT: CelType = simple("uint");
export const DOUBLE: CelType = simple("double");
export const STRING: CelType = simple("string");
export const BYTES: CelType = simple("bytes");
export const DURATION: CelType = simple("duration", "google.protobuf.Duration");
export const TIMESTAMP: CelType = simple(
  "timestamp",
  "google.protobuf.Timestamp",
);

/** Type of lists. */
export function listOf(items: CelType): CelType {
  return { kind: "list", name: "list", params: [items] };
}

/** Type of maps. */
export function mapOf(keys: CelType, values: CelType): CelType {
  return { kind: "map", name: "map", params: [keys, values] };
}

/** Type of a type as a value, such as that of the expression `int`. */
export function typeOfType(type?: CelType): CelType {
  return { kind: "type", name: "type", params: type ? [type] : NONE };
}

/** Type that functions alone can use. */
export function opaque(name: string, ...params: CelType[]): CelType {
  return { kind: "opaque", name, params };
}

/** Type of optional values. */
export function optionalOf(type: CelType): CelType {
  return opaque("optional_type", type);
}

/** Type of messages. */
export function struct(
  name: string,
  field?: CelType["field"],
  fieldNames?: readonly string[],
): CelType {
  return { kind: "struct", name, params: NONE, field, fieldNames };
}

/** Type of messages with the given fields. */
export function message(
  name: string,
  fields: Readonly<Record<string, CelType>>,
): CelType {
  const known = new Map(Object.entries(fields));
  return struct(name, (field) => known.get(field), Object.keys(fields));
}

/** Type of the value of an optional type; undefined for other types. */
export function optionalValue(type: CelType): CelType | undefined {
  return type.kind === "opaque" && type.name === "optional_type"
    ? type.params[0]
    : undefined;
}

/** Whether two types are the same. */
export function sameType(a: CelType, b: CelType): boolean {
  return a === b ||
    a.kind === b.kind && a.name === b.name &&
      a.params.length === b.params.length &&
      a.params.every((param, index) => sameType(param, b.params[index] ?? DYN));
}

/** Text of a type in compile errors. */
export function typeText(type: CelType): string {
  switch (type.kind) {
    case "null":
    case "duration":
    case "timestamp":
      return type.kind;
    default:
      return withParams(type, typeText);
  }
}

/** Name of a type, as in messages about the type of a whole expression. */
export function typeName(type: CelType): string {
  return withParams(type, typeName);
}

function withParams(
  { name, params }: CelType,
  text: (type: CelType) => string,
): string {
  return params.length === 0 ? name : `${name}(${params.map(text).join(", ")})`;
}

/** Types of the type parameters that an expression has determined so far. */
export class TypeMapping {
  #types: Map<string, CelType>;

  constructor(types: Map<string, CelType> = new Map()) {
    this.#types = types;
  }

  /**
   * Whether values of the first types can be used as those of the second ones;
   * the mapping is changed only in that case.
   */
  assignAll(from: readonly CelType[], to: readonly CelType[]): boolean {
    const before = new Map(this.#types);
    if (this.#all(from, to)) return true;
    this.#types = before;
    return false;
  }

  /** Whether values of a type can be used as those of another one. */
  assign(from: CelType, to: CelType): boolean {
    return this.assignAll([from], [to]);
  }

  /**
   * Type with parameters replaced by what they are known to be.
   *
   * @param free Type of parameters that are not known; they remain by default.
   */
  resolve(type: CelType, free?: CelType): CelType {
    if (type.kind === "param") {
      const known = this.#types.get(type.name);
      return known === undefined ? free ?? type : this.resolve(known, free);
    }
    if (type.params.length === 0) return type;
    return {
      ...type,
      params: type.params.map((param) => this.resolve(param, free)),
    };
  }

  #all(from: readonly CelType[], to: readonly CelType[]): boolean {
    return from.length === to.length &&
      from.every((type, index) => this.#fits(type, to[index] ?? DYN));
  }

  #fits(a: CelType, b: CelType): boolean {
    if (b.kind === "param") {
      const result = this.#substitutes(a, b);
      if (result !== undefined) return result;
    }
    if (a.kind === "param") return this.#substitutes(b, a) ?? false;
    if (isDynOrError(a) || isDynOrError(b)) return true;
    if (a.kind === "null" || b.kind === "null") {
      return a.kind === b.kind || isNullable(a) || isNullable(b);
    }
    if (a.kind !== b.kind) return false;
    switch (a.kind) {
      case "type":
        return true;
      case "struct":
        return a.name === b.name;
      case "opaque":
      case "list":
      case "map":
        return a.name === b.name && this.#all(a.params, b.params);
      default:
        return true;
    }
  }

  /**
   * Whether a type can be what a parameter stands for; undefined if nothing is
   * known about the parameter and the type contains it.
   */
  #substitutes(type: CelType, param: CelType): boolean | undefined {
    if (sameType(type, param)) return true;
    const known = this.#types.get(param.name);
    if (known === undefined) {
      if (!this.#isFree(param, type)) return undefined;
      this.#types.set(param.name, type);
      return true;
    }
    if (sameType(type, known)) return true;
    if (!this.#fits(type, known)) return false;
    const general = mostGeneral(type, known);
    if (this.#isFree(param, general)) this.#types.set(param.name, general);
    return true;
  }

  /** Whether a parameter does not occur in a type. */
  #isFree(param: CelType, within: CelType): boolean {
    if (sameType(param, within)) return false;
    if (within.kind === "param") {
      const known = this.#types.get(within.name);
      return known === undefined || this.#isFree(param, known);
    }
    return within.params.every((inner) => this.#isFree(param, inner));
  }
}

function isDynOrError({ kind }: CelType): boolean {
  return kind === "dyn" || kind === "error";
}

function isNullable({ kind }: CelType): boolean {
  return kind === "opaque" || kind === "struct" || kind === "duration" ||
    kind === "timestamp";
}

/** More general one of two types that fit each other. */
export function mostGeneral(a: CelType, b: CelType): CelType {
  return isLessSpecific(a, b) ? a : b;
}

function isLessSpecific(a: CelType, b: CelType): boolean {
  if (a.kind === "dyn" || a.kind === "param") return true;
  if (b.kind === "dyn" || b.kind === "param") return false;
  if (a.kind !== b.kind) return false;
  switch (a.kind) {
    case "type":
      return true;
    case "opaque":
    case "list":
    case "map":
      return a.name === b.name && a.params.length === b.params.length &&
        a.params.every((param, index) =>
          isLessSpecific(param, b.params[index] ?? DYN)
        );
    default:
      return sameType(a, b);
  }
}
