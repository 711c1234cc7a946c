import { Quantity } from "@coracle/operator/client";
import { parseQuantity } from "../validation/quantity_text.ts";
import { CelFailure } from "./cel_errors.ts";
import { type CelType, struct } from "./cel_type.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { registerClass } from "./values.ts";

const LARGEST_INT = 2n ** 63n - 1n;

/** Number of digits that an integer of 64 bits holds. */
const INTEGER_DIGITS = 18;

/** Exponents of ten of suffixes. */
const EXPONENTS: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

/** Value with a scale of ten, as Go keeps quantities that are small enough. */
interface Scaled {
  readonly value: bigint;
  readonly scale: number;
}

/** Quantity with the form in which Go keeps it, on which its methods depend. */
class CelQuantity {
  readonly quantity: Quantity;
  /** Undefined where Go keeps a decimal of any size. */
  readonly scaled: Scaled | undefined;
  /** Whether it is a sum or difference. */
  readonly isComputed: boolean;

  constructor(
    quantity: Quantity,
    scaled: Scaled | undefined,
    isComputed = false,
  ) {
    this.quantity = quantity;
    this.scaled = scaled;
    this.isComputed = isComputed;
  }

  /** The integer that Go has for the quantity; undefined if it has none. */
  get integer(): bigint | undefined {
    if (this.scaled === undefined || this.scaled.scale < 0) return undefined;
    return inRange(raised(this.scaled, 0));
  }
}

/** Type of quantities. */
export const QUANTITY_TYPE: CelType = struct("kubernetes.Quantity");

registerClass(CelQuantity, {
  type: QUANTITY_TYPE,
  equals: (a: CelQuantity, b: CelQuantity) => a.quantity.equals(b.quantity),
});

/** Whether a value is a sum or difference, which Go compares with no quantity on its left. */
export function isComputedQuantity(value: unknown): boolean {
  return value instanceof CelQuantity && value.isComputed;
}

/** CEL function `quantity()`, with the methods of quantities. */
export const QUANTITIES: FunctionDefinitions = {
  "quantity(string): Quantity": parse,
  "isQuantity(string): bool": isQuantity,
  "sign(Quantity): int": ({ quantity: { nano } }: CelQuantity) =>
    nano > 0n ? 1n : nano < 0n ? -1n : 0n,
  "isInteger(this Quantity): bool": ({ integer }: CelQuantity) =>
    integer !== undefined,
  "asInteger(this Quantity): int": asInteger,
  "asApproximateFloat(this Quantity): double": ({ quantity }: CelQuantity) =>
    quantity.toNumber(),
  "isLessThan(this Quantity, Quantity): bool": (
    a: CelQuantity,
    b: CelQuantity,
  ) => compare(a, b) < 0,
  "isGreaterThan(this Quantity, Quantity): bool": (
    a: CelQuantity,
    b: CelQuantity,
  ) => compare(a, b) > 0,
  "compareTo(this Quantity, Quantity): int": (a: CelQuantity, b: CelQuantity) =>
    BigInt(Math.sign(compare(a, b))),
  ...Object.fromEntries(["Quantity", "int"].flatMap((type) => [
    [
      `add(this Quantity, ${type}): Quantity`,
      (a: CelQuantity, b: CelQuantity | bigint) => sum(a, operand(b)),
    ],
    [
      `sub(this Quantity, ${type}): Quantity`,
      (a: CelQuantity, b: CelQuantity | bigint) => sum(a, negated(operand(b))),
    ],
  ])),
};

function parse(text: string): CelQuantity {
  try {
    return new CelQuantity(parseQuantity(text), scaledOf(text));
  } catch (error) {
    throw new CelFailure((error as Error).message);
  }
}

function isQuantity(text: string): boolean {
  try {
    return Boolean(parse(text));
  } catch {
    return false;
  }
}

/** Form of a text in Go: binary suffixes with a fraction need a decimal. */
function scaledOf(text: string): Scaled | undefined {
  const [, sign = "", zeros = "", fraction = "", suffix = ""] =
    /^([+-]?)(\d*)(?:\.(\d*))?(.*)$/.exec(text) ?? [];
  const whole = zeros.replace(/^0+/, "") || "0";
  const value = BigInt(`${sign === "-" ? "-" : ""}${whole}${fraction}`);
  const binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].indexOf(suffix);
  if (binary >= 0) {
    const bits = 10 * (binary + 1);
    const precision = 15 - whole.length - Math.trunc(bits * 3 / 10) - 1;
    return fraction !== "" || precision < 0
      ? undefined
      : { value: value << BigInt(bits), scale: 0 };
  }
  const exponent = EXPONENTS[suffix] ?? Number(suffix.slice(1));
  const scale = exponent - fraction.length;
  return whole.length + fraction.length > INTEGER_DIGITS || scale < -9
    ? undefined
    : { value, scale };
}

function operand(value: CelQuantity | bigint): CelQuantity {
  return value instanceof CelQuantity
    ? value
    : new CelQuantity(Quantity.parse(`${value}`), { value, scale: 0 });
}

function negated({ quantity, scaled }: CelQuantity): CelQuantity {
  const text = quantity.toString();
  return new CelQuantity(
    Quantity.parse(text.startsWith("-") ? text.slice(1) : `-${text}`),
    scaled && { ...scaled, value: -scaled.value },
  );
}

function sum(a: CelQuantity, b: CelQuantity): CelQuantity {
  return new CelQuantity(
    a.quantity.plus(b.quantity),
    a.scaled && b.scaled && scaledSum(a.scaled, b.scaled),
    true,
  );
}

function scaledSum(a: Scaled, b: Scaled): Scaled | undefined {
  if (b.value === 0n) return a;
  if (a.value === 0n) return b;
  const scale = Math.min(a.scale, b.scale);
  const [left, right] = [inRange(raised(a, scale)), inRange(raised(b, scale))];
  if (left === undefined || right === undefined) return undefined;
  const value = inRange(left + right);
  return value === undefined ? undefined : { value, scale };
}

/** Value at a smaller scale. */
function raised({ value, scale }: Scaled, to: number): bigint {
  return value * 10n ** BigInt(scale - to);
}

function inRange(value: bigint): bigint | undefined {
  return value <= LARGEST_INT && value >= -LARGEST_INT - 1n ? value : undefined;
}

function compare(a: CelQuantity, b: CelQuantity): number {
  return a.quantity.compare(b.quantity);
}

function asInteger({ integer }: CelQuantity): bigint {
  if (integer !== undefined) return integer;
  throw new CelFailure("cannot convert value to integer");
}
