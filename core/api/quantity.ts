/** Format of a quantity, as in `1500m`, `1536Mi` and `12e6`. */
type QuantityFormat = "decimal" | "binary" | "exponent";

const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/** Decimal suffixes from a billionth upwards, in steps of a thousand. */
const DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

const NANO = 1_000_000_000n;
/** Largest amount of a binary quantity, in billionths. */
const LARGEST_BINARY = (2n ** 63n - 1n) * NANO;
/** Maximum number of digits, and largest exponent, of a quantity's text. */
const DIGITS_LIMIT = 1_000;

const PATTERN = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/;

/**
 * A quantity of a resource, such as `500m` CPU or `1Gi` of memory, with the
 * rules of Kubernetes (`resource.Quantity`). It is exact to a billionth;
 * smaller fractions are rounded up. Quantities are immutable.
 *
 * @example Compare quantities
 * ```ts
 * import { Quantity } from "@coracle/operator/core";
 *
 * if (Quantity.parse("0.5").toString() !== "500m") throw new Error("Unexpected");
 * if (Quantity.parse("1024Mi").toString() !== "1Gi") throw new Error("Unexpected");
 * if (!Quantity.parse("1").equals(Quantity.parse("1000m"))) {
 *   throw new Error("Expected equal amounts");
 * }
 * ```
 */
export class Quantity {
  /** Amount in billionths. */
  readonly nano: bigint;
  readonly #format: QuantityFormat;
  /** Parsed text, if it is already in canonical form. */
  readonly #text: string | undefined;

  private constructor(nano: bigint, format: QuantityFormat, text?: string) {
    this.nano = nano;
    this.#format = format;
    this.#text = text;
  }

  /**
   * Parses a quantity.
   *
   * @param text A number with an optional suffix, such as `100m`, `1.5Gi` or `2e3`.
   * @throws {SyntaxError} If the text is not a quantity.
   */
  static parse(text: string): Quantity {
    const match = PATTERN.exec(text);
    const [, sign = "", whole = "", fraction = "", suffix = ""] = match ?? [];
    if (match === null || whole + fraction === "") throw notAQuantity(text);
    const unit = unitOf(suffix);
    if (unit === undefined || whole.length + fraction.length > DIGITS_LIMIT) {
      throw notAQuantity(text);
    }
    // Leading zeros are ignored, for the canonical form as well.
    const digits = whole.replace(/^0+/, "");
    const magnitude = toNano(BigInt(`0${whole}${fraction}`), {
      places: fraction.length,
      unit,
    });
    const capped = unit.format === "binary" && magnitude > LARGEST_BINARY
      ? LARGEST_BINARY
      : magnitude;
    const nano = sign === "-" ? -capped : capped;
    const isCanonical = isCanonicalForm(digits, fraction, unit);
    return new Quantity(nano, unit.format, isCanonical ? text : undefined);
  }

  /** Whether a text is a quantity. */
  static is(text: string): boolean {
    try {
      Quantity.parse(text);
      return true;
    } catch {
      return false;
    }
  }

  /** Compares two quantities: negative, zero or positive, for sorting. */
  compare(other: Quantity): number {
    return this.nano < other.nano ? -1 : this.nano > other.nano ? 1 : 0;
  }

  /** Whether two quantities are the same amount, in any format. */
  equals(other: Quantity): boolean {
    return this.nano === other.nano;
  }

  /**
   * Sum of two quantities, in the format of this one; if this one is zero, in that of
   * the other.
   */
  plus(other: Quantity): Quantity {
    const formed = this.nano === 0n ? other : this;
    return new Quantity(this.nano + other.nano, formed.#format);
  }

  /** Quantity rounded up to whole thousandths. */
  roundUpToMilli(): Quantity {
    const unit = NANO / 1000n;
    if (this.nano % unit === 0n) return this;
    return new Quantity(roundUp(this.nano, unit) * unit, this.#format);
  }

  /** Amount as a number, which may be inexact. */
  toNumber(): number {
    return Number(this.nano / NANO) + Number(this.nano % NANO) / Number(NANO);
  }

  /** Canonical text, as an API server returns it. */
  toString(): string {
    if (this.#text !== undefined) return this.#text;
    if (this.nano === 0n) return "0";
    const isWhole = this.nano % NANO === 0n;
    const amount = this.nano / NANO;
    const isSmall = amount > -1024n && amount < 1024n;
    return this.#format === "binary" && isWhole && !isSmall
      ? inThousands(amount, 1024n, BINARY_SUFFIXES)
      : this.#format === "exponent"
      ? withExponent(this.nano)
      : inThousands(this.nano, 1000n, DECIMAL_SUFFIXES);
  }
}

interface Unit {
  readonly format: QuantityFormat;
  /** Exponent: of two for binary units, of ten for the others. */
  readonly exponent: number;
}

function unitOf(suffix: string): Unit | undefined {
  const binary = BINARY_SUFFIXES.indexOf(suffix);
  if (binary > 0) return { format: "binary", exponent: binary * 10 };
  const decimal = DECIMAL_SUFFIXES.indexOf(suffix);
  if (decimal >= 0) return { format: "decimal", exponent: decimal * 3 - 9 };
  const match = /^[eE]([+-]?\d+)$/.exec(suffix);
  const exponent = Number(match?.[1]);
  return match && Math.abs(exponent) <= DIGITS_LIMIT
    ? { format: "exponent", exponent }
    : undefined;
}

function toNano(
  digits: bigint,
  { places, unit }: { readonly places: number; readonly unit: Unit },
): bigint {
  const scaled = unit.format === "binary"
    ? digits * 2n ** BigInt(unit.exponent) * NANO
    : digits * NANO * 10n ** BigInt(Math.max(unit.exponent, 0));
  const divisor = 10n ** BigInt(
    places + (unit.format === "binary" ? 0 : Math.max(-unit.exponent, 0)),
  );
  return roundUp(scaled, divisor);
}

/** Divides an amount; a positive quotient is rounded up. */
function roundUp(amount: bigint, divisor: bigint): bigint {
  const quotient = amount / divisor;
  return amount > 0n && amount % divisor !== 0n ? quotient + 1n : quotient;
}

/**
 * Whether kube-apiserver keeps a text unchanged. Only the digits decide:
 * `1.500` stays, `0.5` does not.
 */
function isCanonicalForm(
  digits: string,
  fraction: string,
  unit: Unit,
): boolean {
  const shifted = (digits === "" ? "0" : digits) + fraction;
  if (shifted === "0" && fraction === "") return false;
  if (unit.format === "binary") {
    return fraction === "" && digits.length < 10 && Number(digits) % 8 !== 0;
  }
  return shifted.length <= 18 && unit.exponent - fraction.length >= -9 &&
    (unit.exponent - fraction.length) % 3 === 0 &&
    !shifted.endsWith("000") && !shifted.startsWith("0");
}

function inThousands(
  amount: bigint,
  base: bigint,
  suffixes: readonly string[],
): string {
  let rest = amount;
  let index = 0;
  while (rest % base === 0n && index < suffixes.length - 1) {
    rest /= base;
    index++;
  }
  return `${rest}${suffixes[index]}`;
}

function withExponent(nano: bigint): string {
  let rest = nano;
  let exponent = -9;
  while (rest % 1000n === 0n) {
    rest /= 1000n;
    exponent += 3;
  }
  return exponent === 0 ? `${rest}` : `${rest}e${exponent}`;
}

function notAQuantity(text: string): SyntaxError {
  return new SyntaxError(
    `Cannot read a quantity: it must be a number with a unit such as m, k, Mi or e3: received ${
      JSON.stringify(text.slice(0, 100))
    }`,
  );
}
