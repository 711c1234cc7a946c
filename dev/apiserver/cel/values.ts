import { CelError, NO_SUCH_OVERLOAD } from "./cel_errors.ts";
import type { CelType } from "./cel_type.ts";

/**
 * Values of CEL: null, booleans, strings and byte arrays are JavaScript's; an int
 * is a `bigint`, a double a `number`, a list an array. The other types have
 * classes here, and errors are values of {@linkcode CelError}.
 *
 * @module
 */

/** Unsigned integer. */
export class Uint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

/** Span of time. */
export class Duration {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** Point in time, in nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint;
  /** Offset of the time zone in which it is shown, in seconds. */
  readonly offset: number;

  constructor(nanos: bigint, offset = 0) {
    this.nanos = nanos;
    this.offset = offset;
  }
}

/** Type as a value. */
export class TypeValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Value that may be absent. */
export class Optional {
  static readonly NONE: Optional = new Optional(undefined);

  /** Value; undefined if it is absent. */
  readonly value: unknown;

  private constructor(value: unknown) {
    this.value = value;
  }

  /** Optional that has a value. */
  static of(value: unknown): Optional {
    return new Optional(value);
  }
}

/** Map, or message of a schema. */
export interface CelMap {
  readonly size: number;
  /** Value of a key; undefined if it is absent, an error if no map has such keys. */
  find(key: unknown): unknown;
  keys(): readonly unknown[];
  /** Whether another map has the same values; compared by keys by default. */
  equals?(other: CelMap): boolean;
}

/** Map whose values are in memory. */
export class ValueMap implements CelMap {
  readonly #entries: Map<string, readonly [key: unknown, value: unknown]> =
    new Map();

  constructor(entries: Iterable<readonly [unknown, unknown]> = []) {
    for (const [key, value] of entries) this.set(key, value);
  }

  get size(): number {
    return this.#entries.size;
  }

  find(key: unknown): unknown {
    const text = keyText(key);
    return text === undefined ? undefined : this.#entries.get(text)?.[1];
  }

  keys(): readonly unknown[] {
    return [...this.#entries.values()].map(([key]) => key);
  }

  set(key: unknown, value: unknown): void {
    const text = keyText(key);
    if (text !== undefined) this.#entries.set(text, [key, value]);
  }

  delete(key: unknown): void {
    this.#entries.delete(keyText(key) ?? "");
  }

  [Symbol.iterator](): Iterator<readonly [key: unknown, value: unknown]> {
    return this.#entries.values();
  }
}

/** Text that is equal for equal keys: an int, uint and double may be equal. */
function keyText(key: unknown): string | undefined {
  switch (typeof key) {
    case "string":
      return `s${key}`;
    case "boolean":
    case "bigint":
      return String(key);
    case "number":
      return Number.isInteger(key) ? String(BigInt(key)) : undefined;
    default:
      if (key instanceof Uint) return String(key.value);
      return key instanceof Duration || key instanceof Timestamp
        ? `${typeNameOf(key)} ${key.nanos}`
        : undefined;
  }
}

/** Message that an expression has made. */
export class MessageValue {
  readonly name: string;
  readonly fields: ReadonlyMap<string, unknown>;

  constructor(name: string, fields: ReadonlyMap<string, unknown>) {
    this.name = name;
    this.fields = fields;
  }
}

/** Behaviour of the values of a class that a library adds to CEL. */
export interface OpaqueClass {
  readonly type: CelType;
  equals?(a: never, b: never): boolean;
}

const OPAQUE: Map<unknown, OpaqueClass> = new Map();

/** Adds a class of values, such as that of quantities. */
export function registerClass(
  ctor: { readonly prototype: object },
  opaque: OpaqueClass,
): void {
  OPAQUE.set(ctor, opaque);
}

function opaqueClass(value: unknown): OpaqueClass | undefined {
  return typeof value === "object" && value !== null
    ? OPAQUE.get(value.constructor)
    : undefined;
}

/** Whether a value is a map or a message of a schema. */
export function isMap(value: unknown): value is CelMap {
  return typeof value === "object" && value !== null && "find" in value &&
    !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Name of the type of a value. */
export function typeNameOf(value: unknown): string {
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
  if (Array.isArray(value)) return "list";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Uint) return "uint";
  if (value instanceof Timestamp) return "google.protobuf.Timestamp";
  if (value instanceof Duration) return "google.protobuf.Duration";
  if (value instanceof TypeValue) return "type";
  if (value instanceof Optional) return "optional_type";
  if (value instanceof MessageValue) return value.name;
  return opaqueClass(value)?.type.name ?? "map";
}

/** Size of a value; undefined for values without size. */
export function sizeOf(value: unknown): number | undefined {
  if (typeof value === "string") return characterCount(value);
  if (Array.isArray(value)) return value.length;
  if (value instanceof Uint8Array) return value.length;
  return isMap(value) ? value.size : undefined;
}

/** Number of code points of a text. */
function characterCount(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00 && i + 1 < text.length) i++;
    count++;
  }
  return count;
}

/** How the items of a list are compared and united; absent for plain lists. */
export type ListRelation =
  | { readonly kind: "set" }
  | { readonly kind: "map"; readonly keys: readonly string[] };

const RELATIONS: WeakMap<readonly unknown[], ListRelation> = new WeakMap();

/** Marks a list as one of type `set` or `map`. */
export function related(
  items: readonly unknown[],
  relation: ListRelation | undefined,
): readonly unknown[] {
  if (relation) RELATIONS.set(items, relation);
  return items;
}

/**
 * Concatenation of two lists; the union if the left one has type `set` or `map`.
 * Of two items with the same keys, the right one replaces the left one at its
 * position.
 */
export function joined(
  a: readonly unknown[],
  b: readonly unknown[],
): readonly unknown[] {
  const relation = RELATIONS.get(a);
  switch (relation?.kind) {
    case undefined:
      return [...a, ...b];
    case "set": {
      const all = [...a];
      for (const item of b) {
        if (!all.some((other) => equal(item, other))) all.push(item);
      }
      return related(all, relation);
    }
    case "map": {
      const all = new Map<string, unknown>();
      for (const item of [...a, ...b]) {
        all.set(itemKey(item, relation.keys), item);
      }
      return related([...all.values()], relation);
    }
  }
}

function itemKey(item: unknown, keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => {
    const value = isMap(item) ? item.find(key) : undefined;
    return [typeof value, String(value)];
  }));
}

/** Whether two values are equal; values of different types are not, but numbers may be. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return typeof a !== "number" || !Number.isNaN(a);
  const order = compareNumbers(a, b);
  if (order !== undefined) return order === 0;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (Array.isArray(a)) return Array.isArray(b) && listsEqual(a, b);
  if (a instanceof Uint8Array) {
    return b instanceof Uint8Array && compareBytes(a, b) === 0;
  }
  if (a instanceof Timestamp) {
    return b instanceof Timestamp && a.nanos === b.nanos;
  }
  if (a instanceof Duration) {
    return b instanceof Duration && a.nanos === b.nanos;
  }
  if (a instanceof TypeValue) {
    return b instanceof TypeValue && a.name === b.name;
  }
  if (a instanceof Optional) {
    return b instanceof Optional &&
      (a.value === undefined || b.value === undefined
        ? a.value === b.value
        : equal(a.value, b.value));
  }
  if (a instanceof MessageValue) {
    return b instanceof MessageValue && a.name === b.name &&
      a.fields.size === b.fields.size &&
      [...a.fields].every(([name, value]) => equal(value, b.fields.get(name)));
  }
  const known = opaqueClass(a);
  if (known !== undefined) {
    return opaqueClass(b) === known && known.equals !== undefined &&
      known.equals(a as never, b as never);
  }
  return isMap(a) && isMap(b) && mapsEqual(a, b);
}

function mapsEqual(a: CelMap, b: CelMap): boolean {
  if (a.equals) return a.equals(b);
  return a.size === b.size && a.keys().every((key) => {
    const other = b.find(key);
    return other !== undefined && equal(a.find(key), other);
  });
}

function listsEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  const relation = RELATIONS.get(a);
  switch (relation?.kind) {
    case undefined:
      return a.every((item, index) => equal(item, b[index]));
    case "set":
      return b.every((item) => a.some((other) => equal(other, item)));
    case "map": {
      const items = new Map(
        a.map((item) => [itemKey(item, relation.keys), item] as const),
      );
      return b.every((item) => {
        const known = items.get(itemKey(item, relation.keys));
        return known !== undefined && equal(known, item);
      });
    }
  }
}

/** Order of two numbers; undefined if one is not of a number type, NaN if one is NaN. */
function compareNumbers(a: unknown, b: unknown): number | undefined {
  const left = a instanceof Uint ? a.value : a;
  const right = b instanceof Uint ? b.value : b;
  if (typeof left !== "bigint" && typeof left !== "number") return undefined;
  if (typeof right !== "bigint" && typeof right !== "number") return undefined;
  // As Go does, an integer becomes a double before it is compared with one.
  const same = typeof left === typeof right;
  const [one, other] = same ? [left, right] : [Number(left), Number(right)];
  if (Number.isNaN(one) || Number.isNaN(other)) return NaN;
  return one < other ? -1 : one > other ? 1 : 0;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const order = (a[i] as number) - (b[i] as number);
    if (order !== 0) return Math.sign(order);
  }
  return Math.sign(a.length - b.length);
}

const ENCODER = new TextEncoder();

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  // The order of UTF-8 differs from that of UTF-16 beyond the base plane.
  return /[\ud800-\udfff]/.test(a) || /[\ud800-\udfff]/.test(b)
    ? compareBytes(ENCODER.encode(a), ENCODER.encode(b))
    : a < b
    ? -1
    : 1;
}

/** Order of two values; an error if they have none. */
export function compare(a: unknown, b: unknown): number | CelError {
  const order = compareNumbers(a, b);
  if (order !== undefined) {
    return Number.isNaN(order)
      ? new CelError("NaN values cannot be ordered")
      : order;
  }
  if (typeof a === "string" && typeof b === "string") return compareTexts(a, b);
  if (typeof a === "boolean" && typeof b === "boolean") {
    return Number(a) - Number(b);
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return compareBytes(a, b);
  }
  const times = a instanceof Timestamp && b instanceof Timestamp ||
    a instanceof Duration && b instanceof Duration;
  if (!times) return NO_SUCH_OVERLOAD;
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
}
