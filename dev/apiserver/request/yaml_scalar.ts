import { notJson } from "./json_body.ts";
import { Buffer } from "node:buffer";

/** Value of a YAML scalar as Go's YAML library reads it; an integer is a bigint. */
export type GoScalar = null | boolean | bigint | number | string;

const WORDS: ReadonlyMap<string, GoScalar> = new Map<string, GoScalar>([
  ...spelt("y yes true on", true),
  ...spelt("n no false off", false),
  ...spelt("~ null", null),
  ["", null],
  ...spelt(".inf +.inf", Infinity),
  ...spelt("-.inf", -Infinity),
  [".nan", NaN],
  [".NaN", NaN],
  [".NAN", NaN],
]);

/** Spellings of words: in lower case, with a capital, and in capitals. */
function spelt(words: string, value: GoScalar): [string, GoScalar][] {
  return words.split(" ").flatMap((word) =>
    [
      word,
      word.replace(/[a-z]/, (letter) => letter.toUpperCase()),
      word.toUpperCase(),
    ].map((one): [string, GoScalar] => [one, value])
  );
}

const INTEGER = /^[-+]?(?:0x[0-9a-f]+|0o?[0-7]+|0b[01]+|0|[1-9]\d*)$/i;
const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;
const LEAST_INTEGER = -(2n ** 63n);
const LARGEST_INTEGER = 2n ** 64n - 1n;
/** Beginning of the tags of YAML's own types. */
const PREFIX = "tag:yaml.org,2002:";

/**
 * Reads a scalar: without timestamps and numbers to the base of 60.
 *
 * @param tag Tag of the scalar; empty for a plain one without a tag.
 * @throws {SyntaxError} If it is not of the tag's type.
 */
export function goScalar(text: string, tag: string): GoScalar {
  const type = tag.startsWith(PREFIX) ? tag.slice(PREFIX.length) : tag;
  if (type === "binary") {
    if (/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text)) {
      return Buffer.from(text, "base64").toString();
    }
    throw notJson("yaml: !!binary value contains invalid base64 data");
  }
  if (!/^(?:|bool|int|float|null)$/.test(type)) return text;
  const read = plainScalar(text, type);
  const found = typeOf(read);
  if (type === "" || found === type || found === "int" && type === "float") {
    return read;
  }
  throw notJson(
    `yaml: cannot decode !!${found} \`${text}\` as a !!${type}`,
  );
}

/** Name of the type of a scalar. */
function typeOf(value: GoScalar): string {
  if (value === null) return "null";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float";
  return typeof value === "boolean" ? "bool" : "str";
}

function plainScalar(text: string, type: string): GoScalar {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (!/^[-+.\d]/.test(text)) return text;
  const plain = text.replaceAll("_", "");
  if (INTEGER.test(plain)) {
    const integer = integerOf(plain);
    if (integer >= LEAST_INTEGER && integer <= LARGEST_INTEGER) {
      return type === "float" ? Number(integer) : integer;
    }
  }
  const float = FLOAT.test(plain) ? Number(plain) : Infinity;
  return Number.isFinite(float) ? float : text;
}

function integerOf(text: string): bigint {
  const [, sign, digits = ""] = /^([-+]?)(.*)$/.exec(text) ?? [];
  const size = BigInt(digits.replace(/^0(?=[0-7])/, "0o"));
  return sign === "-" ? -size : size;
}

/**
 * Name of a field that is not written as text.
 *
 * @returns Undefined if no field can have it as its name.
 */
export function fieldName(key: GoScalar): string | undefined {
  if (key === null) return undefined;
  if (typeof key === "bigint") return key < 2n ** 63n ? `${key}` : undefined;
  return typeof key === "number" ? shortFloat(key) : String(key);
}

/** Text of a float in single precision, as strconv.FormatFloat(value, 'g', -1, 32). */
function shortFloat(value: number): string {
  const single = Math.fround(value);
  if (Number.isNaN(single)) return ".nan";
  if (!Number.isFinite(single)) return single < 0 ? "-.inf" : ".inf";
  if (single === 0) return Object.is(single, -0) ? "-0" : "0";
  let digits = 0;
  while (Math.fround(Number(single.toExponential(digits))) !== single) digits++;
  const [mantissa, exponent = ""] = single.toExponential(digits).split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(Number(`${mantissa}e${power}`));
  return `${mantissa}e${exponent[0]}${
    String(Math.abs(power)).padStart(2, "0")
  }`;
}

/** Value in the syntax of Go (`%#v`). */
export function goSyntax(value: unknown, isInner = false): string {
  if (value === null || value === undefined) {
    return isInner ? "interface {}(nil)" : "<nil>";
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => goSyntax(item, true));
    return `[]interface {}{${items.join(", ")}}`;
  }
  if (typeof value === "object") {
    const fields = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
      .map(([name, field]) =>
        `${JSON.stringify(name)}:${goSyntax(field, true)}`
      );
    return `map[interface {}]interface {}{${fields.join(", ")}}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
