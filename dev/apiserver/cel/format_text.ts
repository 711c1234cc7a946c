import { goQuote } from "../validation/go_value.ts";
import type { Problem } from "./cel_errors.ts";
import { CelFailure } from "./cel_errors.ts";
import type { CelType } from "./cel_type.ts";
import type { CallNode, ExpressionNode } from "./expression.ts";
import { durationText, timeText } from "./go_time.ts";
import { doubleText } from "./number_text.ts";
import {
  Duration,
  isMap,
  Timestamp,
  typeNameOf,
  TypeValue,
  Uint,
} from "./values.ts";

/** Verb of a format, such as `%.2f`. */
interface Verb {
  readonly letter: string;
  readonly digits: number;
}

const DEFAULT_DIGITS = 6;

/** Parts of a format: texts and verbs. */
function parts(template: string): readonly (string | Verb)[] {
  const found: (string | Verb)[] = [];
  let last = 0;
  for (const match of template.matchAll(/%(?:%|(?:\.(\d*))?([^])?)/g)) {
    found.push(template.slice(last, match.index));
    last = match.index + match[0].length;
    if (match[0] === "%%") found.push("%");
    else {
      found.push({
        letter: match[2] ?? "",
        digits: match[1] === undefined ? DEFAULT_DIGITS : Number(match[1]),
      });
    }
  }
  found.push(template.slice(last));
  return found;
}

/** Formats values by the verbs of Go that CEL supports. */
export function format(template: string, values: readonly unknown[]): string {
  let next = 0;
  return parts(template).map((part) => {
    if (typeof part === "string") return part;
    if (next >= values.length) {
      throw new CelFailure(`index ${next} out of range`);
    }
    return formatted(part, values[next++]);
  }).join("");
}

function formatted({ letter, digits }: Verb, value: unknown): string {
  switch (letter) {
    case "s":
      return shown(value);
    case "d":
      return decimal(value) ?? wrong(letter, value);
    case "f":
      return grouped(double(value) ?? wrong(letter, value), digits);
    case "e":
      return scientific(double(value) ?? wrong(letter, value), digits);
    case "b":
      if (typeof value === "boolean") return value ? "1" : "0";
      return whole(value)?.toString(2) ?? wrong(letter, value);
    case "o":
      return whole(value)?.toString(8) ?? wrong(letter, value);
    case "x":
      return hexadecimal(value) ?? wrong(letter, value);
    case "X":
      return hexadecimal(value)?.toUpperCase() ?? wrong(letter, value);
    case "":
      throw new CelFailure("unexpected end of string");
    default:
      throw new CelFailure(unrecognized(letter));
  }
}

function unrecognized(letter: string): string {
  return `could not parse formatting clause: unrecognized formatting clause "${letter}"`;
}

/** What a verb takes, as its errors say. */
const TAKES: Readonly<Record<string, string>> = {
  s: "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
  d: "decimal clause can only be used on integers",
  f: "fixed-point clause can only be used on doubles",
  e: "scientific clause can only be used on doubles",
  b: "only integers and bools can be formatted as binary",
  o: "octal clause can only be used on integers",
  x: "only integers, byte buffers, and strings can be formatted as hex",
  X: "only integers, byte buffers, and strings can be formatted as hex",
};

function mismatch(letter: string, type: string): string {
  return `error during formatting: ${TAKES[letter]}, was given ${type}`;
}

function wrong(letter: string, value: unknown): never {
  throw new CelFailure(mismatch(letter, typeNameOf(value)));
}

function whole(value: unknown): bigint | undefined {
  if (typeof value === "bigint") return value;
  return value instanceof Uint ? value.value : undefined;
}

function decimal(value: unknown): string | undefined {
  return whole(value)?.toString();
}

const SPECIAL: ReadonlySet<unknown> = new Set(["NaN", "Infinity", "-Infinity"]);

function double(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return SPECIAL.has(value) ? Number(value) : undefined;
}

function special(value: number): string | undefined {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return undefined;
  return value > 0 ? "∞" : "-∞";
}

/** Number with digits after the point and thousands set apart. */
function grouped(value: number, digits: number): string {
  const text = special(value);
  if (text !== undefined) return text;
  const [whole = "", fraction] = fixed(value, digits).split(".");
  const separated = whole.replace(/\B(?=(?:\d{3})+$)/g, ",");
  return fraction === undefined ? separated : `${separated}.${fraction}`;
}

/** Decimal notation, which rounds half to even as Go does. */
function fixed(value: number, digits: number): string {
  if (Math.abs(value) >= 1e21) {
    return `${BigInt(value)}${digits > 0 ? `.${"0".repeat(digits)}` : ""}`;
  }
  const most = Math.min(digits, 100);
  const text = value.toFixed(most);
  const exact = value.toFixed(100);
  const point = exact.indexOf(".");
  // JavaScript rounds half away from zero.
  const isHalf = /^50*$/.test(exact.slice(point + 1 + most));
  const rounded = isHalf && /[13579]$/.test(text)
    ? exact.slice(0, most === 0 ? point : point + 1 + most)
    : text;
  return rounded + "0".repeat(digits - most);
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * Number in scientific notation with six digits; the exponent has at least two.
 *
 * @param width Minimum length, which is what the digits of the verb are upstream.
 */
function scientific(value: number, width: number): string {
  return (special(value) ?? exponential(value)).padStart(width);
}

function exponential(value: number): string {
  const [mantissa = "", exponent = ""] = value.toExponential(DEFAULT_DIGITS)
    .split("e");
  const sign = exponent.startsWith("-") ? "⁻" : "";
  const raised = exponent.slice(1).padStart(2, "0")
    .replace(/\d/g, (digit) => SUPERSCRIPTS[Number(digit)] ?? "");
  return `${mantissa}×10${sign}${raised}`;
}

function hexadecimal(value: unknown): string | undefined {
  if (typeof value === "string") return hexOf(new TextEncoder().encode(value));
  return value instanceof Uint8Array
    ? hexOf(value)
    : whole(value)?.toString(16);
}

function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Text of a value for `%s`. */
function shown(value: unknown): string {
  if (Array.isArray(value) || isMap(value)) return nested(value);
  if (value === null) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return doubleText(value);
  if (value instanceof Uint8Array) {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(value);
    } catch {
      throw new CelFailure(
        "error during formatting: could not convert argument %!q(*types.Err=&{invalid UTF-8 in bytes, cannot convert to string 0}) to string",
      );
    }
  }
  if (value instanceof Timestamp) return timeText(value);
  if (value instanceof Duration) return durationText(value.nanos);
  if (value instanceof TypeValue) return value.name;
  return decimal(value) ?? wrong("s", value);
}

/** Text of a value within a list or map. */
function nested(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(nested).join(", ")}]`;
  if (isMap(value)) {
    const entries = value.keys().map((key) => ({
      key: typeof key === "string" ? goQuote(key) : shown(key),
      value: nested(value.find(key)),
    }));
    return `{${
      entries.sort((a, b) => a.key < b.key ? -1 : 1)
        .map(({ key, value }) => `${key}:${value}`).join(", ")
    }}`;
  }
  if (typeof value === "string") return goQuote(value);
  if (value instanceof Uint8Array) return `b${goQuote(shown(value))}`;
  if (typeof value === "number") {
    return Number.isFinite(value)
      ? fixed(value, DEFAULT_DIGITS)
      : `"${Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf"}"`;
  }
  if (value instanceof Timestamp) {
    return `timestamp("${timeText(value)}")`;
  }
  if (value instanceof Duration) {
    return `duration("${durationText(value.nanos)}")`;
  }
  return shown(value);
}

/** Kinds of types that a verb takes. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  s: [
    "list",
    "map",
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "timestamp",
    "bytes",
    "duration",
    "type",
    "null",
  ],
  d: ["int", "uint"],
  f: ["double", "string"],
  e: ["double", "string"],
  b: ["int", "uint", "bool"],
  o: ["int", "uint"],
  x: ["int", "uint", "string", "bytes"],
  X: ["int", "uint", "string", "bytes"],
};

/** Problem of a call of `format()` with a literal template and a literal list. */
export function formatProblem(
  { target, args, at }: CallNode,
): Problem | undefined {
  const [list] = args;
  if (target?.kind !== "literal" || typeof target.value !== "string") return;
  if (list?.kind !== "list") return;
  const { items } = list;
  let next = 0;
  for (const part of parts(target.value)) {
    if (typeof part === "string") continue;
    const { letter } = part;
    if (letter === "") return { at, message: "unexpected end of string" };
    const item = items[next];
    if (item === undefined) {
      return { at, message: `index ${next} out of range` };
    }
    next++;
    const kinds = KINDS[letter];
    if (kinds === undefined) return { at, message: unrecognized(letter) };
    const bad = misfit(item, kinds, letter === "s");
    if (bad !== undefined) {
      return { at: bad.at, message: mismatch(letter, bad.type?.name ?? "") };
    }
  }
  return items.length > next
    ? {
      at,
      message:
        `too many arguments supplied to string.format (expected ${next}, got ${items.length})`,
    }
    : undefined;
}

/** Part of an argument whose type a verb does not take. */
function misfit(
  node: ExpressionNode,
  kinds: readonly string[],
  nested: boolean,
): ExpressionNode | undefined {
  const type: CelType | undefined = node.type;
  if (type?.kind !== "dyn" && !kinds.includes(type?.kind ?? "")) return node;
  if (!nested) return undefined;
  const inner = node.kind === "list"
    ? node.items
    : node.kind === "map"
    ? node.entries.flatMap(({ key, value }) => [key, value])
    : [];
  for (const part of inner) {
    const bad = misfit(part, kinds, true);
    if (bad) return bad;
  }
  return undefined;
}
