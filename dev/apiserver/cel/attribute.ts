import { CelError } from "./cel_errors.ts";
import { charge, type Step } from "./evaluation_step.ts";
import { type CelMap, isMap, MessageValue, Optional, Uint } from "./values.ts";

/** Value with selections from it. */
export interface Attribute {
  readonly base: Step;
  readonly qualifiers: readonly Qualifier[];
  /** Cost of the value itself, without its selections. */
  readonly cost: 0 | 1;
}

/** Selection of a field, key or index. */
export interface Qualifier {
  readonly key: Step;
  /** Whether a missing value gives `none` rather than an error. */
  readonly optional: boolean;
  /** Whether only the presence is asked for. */
  readonly test: boolean;
}

/** Step that makes the selections of an attribute; their cost is charged. */
export function resolver({ base, qualifiers }: Attribute): Step {
  if (qualifiers.length === 0) return base;
  return (run) => {
    let value = base(run);
    let optional = false;
    if (value instanceof Optional) {
      if (value.value === undefined) return value;
      optional = true;
      value = value.value;
    }
    for (const { key, optional: maybe, test } of qualifiers) {
      if (value instanceof CelError) return value;
      optional ||= maybe;
      const name = key(run);
      if (name instanceof CelError) return name;
      const found = valueAt(value, name);
      const absent = found === undefined || found === NO_INDEX ||
        found === NO_FIELDS;
      if (optional && absent) return Optional.NONE;
      charge(run, 1);
      if (test) value = found === NO_FIELDS ? false : presence(found);
      else value = absent ? missing(found, name) : found;
    }
    if (value instanceof CelError || !optional) return value;
    return Optional.of(value);
  };
}

function presence(found: unknown): unknown {
  return found instanceof CelError
    ? found
    : found !== undefined && found !== NO_INDEX;
}

/** Result for an index outside of a list. */
const NO_INDEX = Symbol("no index");

/** Result for a value that has neither keys nor items. */
const NO_FIELDS = Symbol("no fields");

/** Value of a key or index; undefined or a symbol if it is absent. */
function valueAt(value: unknown, key: unknown): unknown {
  if (isMap(value)) return value.find(key);
  if (Array.isArray(value)) {
    const index = indexOf(key);
    if (index instanceof CelError) return index;
    return index >= 0 && index < value.length ? value[index] : NO_INDEX;
  }
  if (value instanceof MessageValue) return value.fields.get(String(key));
  return fieldOf(value, key);
}

/** Value of a field of an object of a library, such as `authorizer`. */
function fieldOf(value: unknown, key: unknown): unknown {
  const fields = (value as { readonly celFields?: CelMap } | null)?.celFields;
  return fields === undefined ? NO_FIELDS : fields.find(key);
}

function indexOf(key: unknown): number | CelError {
  if (typeof key === "bigint") return Number(key);
  if (key instanceof Uint) return Number(key.value);
  if (typeof key === "number") {
    return Number.isInteger(key)
      ? key
      : new CelError(`unsupported index value ${key} in list`);
  }
  return new CelError(`unsupported index type '${typeof key}' in list`);
}

function missing(found: unknown, key: unknown): CelError {
  const text = key instanceof Uint ? key.value : key;
  return new CelError(
    found === NO_INDEX
      ? `index out of bounds: ${String(text)}`
      : `no such key: ${String(text)}`,
  );
}
