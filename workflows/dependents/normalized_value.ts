import { Quantity } from "../../core/api/quantity.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import {
  type Form,
  formOfField,
  isFilledIn,
  saysNothing,
  type Spelling,
} from "./value_form.ts";

/**
 * Whether a stored value is what was asked for, however the server spells it:
 * quantities, times and durations by what they mean, and with what it fills in.
 *
 * Only values that are known to be spelled so are read so: `1.0` and `1.00` in a
 * ConfigMap are two texts, and so are the port `80` and the name `"80"` of one.
 *
 * @param desired What was asked for.
 * @param actual What is stored.
 * @param form What is known of the value and of what is in it.
 */
export function sameValue(
  desired: unknown,
  actual: unknown,
  form?: Form,
): boolean {
  if (desired === actual) return true;
  if (saysNothing(desired, form) && saysNothing(actual, form)) return true;
  if (Array.isArray(desired)) {
    return Array.isArray(actual) && desired.length === actual.length &&
      desired.every((item, index) => sameValue(item, actual[index], form));
  }
  if (isJsonObject(desired)) {
    if (!isJsonObject(actual)) return false;
    for (const [name, value] of Object.entries(desired)) {
      if (!sameValue(value, actual[name], formOfField(form, name))) {
        return false;
      }
    }
    return Object.entries(actual).every(([name, value]) =>
      Object.hasOwn(desired, name) ||
      saysNothing(value, formOfField(form, name)) ||
      isFilledIn(form, name, value)
    );
  }
  const meaningOf = typeof form === "string" ? MEANINGS[form] : undefined;
  const meaning = meaningOf?.(desired);
  return meaning !== undefined && meaning === meaningOf?.(actual);
}

/** What a value means, as something that can be compared; undefined if nothing. */
const MEANINGS: Readonly<
  Partial<
    Record<Spelling, (value: unknown) => string | number | bigint | undefined>
  >
> = {
  quantity: (value) => {
    try {
      return Quantity.parse(String(value)).nano;
    } catch {
      return undefined;
    }
  },
  time: (value) => {
    if (typeof value !== "string") return undefined;
    // Dates hold milliseconds; digits behind those are compared as text.
    const [, beyond = ""] = /\.\d{3}(\d*)/.exec(value) ?? [];
    const time = Date.parse(value);
    return Number.isNaN(time)
      ? undefined
      : `${time}.${beyond.replace(/0+$/, "")}`;
  },
  duration: (value) =>
    typeof value === "string" ? nanoseconds(value) : undefined,
};

/** A duration as Go writes it: signed numbers with units, such as `1h0m0.5s`. */
const DURATION = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;
const NANOSECONDS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  "µs": 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

function nanoseconds(text: string): number | undefined {
  if (text === "0") return 0;
  // The bound keeps a hostile object from costing anything.
  if (text.length > 64 || !DURATION.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    sum += Number(amount) * NANOSECONDS[unit!]!;
  }
  return Math.round(text.startsWith("-") ? -sum : sum);
}
