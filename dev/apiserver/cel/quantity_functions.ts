import { Quantity } from "@coracle/operator/client";
import { CelFailure } from "./cel_errors.ts";
import { type CelType, struct } from "./cel_type.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { registerClass } from "./values.ts";

const NANO = 1_000_000_000n;
const LARGEST_INT = 2n ** 63n - 1n;

/** Type of quantities. */
export const QUANTITY_TYPE: CelType = struct("kubernetes.Quantity");

registerClass(Quantity, {
  type: QUANTITY_TYPE,
  equals: (a: Quantity, b: Quantity) => a.nano === b.nano,
});

/** CEL function `quantity()`, with the methods of quantities. */
export const QUANTITIES: FunctionDefinitions = {
  "quantity(string): Quantity": parse,
  "isQuantity(string): bool": (text: string) => Quantity.is(text),
  "sign(Quantity): int": ({ nano }: Quantity) =>
    nano > 0n ? 1n : nano < 0n ? -1n : 0n,
  "isInteger(this Quantity): bool": isInteger,
  "asInteger(this Quantity): int": asInteger,
  "asApproximateFloat(this Quantity): double": (quantity: Quantity) =>
    quantity.toNumber(),
  "isLessThan(this Quantity, Quantity): bool": (a: Quantity, b: Quantity) =>
    a.compare(b) < 0,
  "isGreaterThan(this Quantity, Quantity): bool": (a: Quantity, b: Quantity) =>
    a.compare(b) > 0,
  "compareTo(this Quantity, Quantity): int": (a: Quantity, b: Quantity) =>
    BigInt(Math.sign(a.compare(b))),
  ...Object.fromEntries(["Quantity", "int"].flatMap((type) => [
    [
      `add(this Quantity, ${type}): Quantity`,
      (a: Quantity, b: Quantity | bigint) => a.plus(parse(b)),
    ],
    [
      `sub(this Quantity, ${type}): Quantity`,
      (a: Quantity, b: Quantity | bigint) => a.plus(negated(parse(b))),
    ],
  ])),
};

function parse(value: Quantity | bigint | string): Quantity {
  if (value instanceof Quantity) return value;
  try {
    return Quantity.parse(String(value));
  } catch {
    throw new CelFailure(
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
  }
}

function negated(quantity: Quantity): Quantity {
  const text = quantity.toString();
  return Quantity.parse(text.startsWith("-") ? text.slice(1) : `-${text}`);
}

function isInteger({ nano }: Quantity): boolean {
  const whole = nano / NANO;
  return nano % NANO === 0n && whole <= LARGEST_INT && whole >= -LARGEST_INT;
}

function asInteger(quantity: Quantity): bigint {
  if (!isInteger(quantity)) {
    throw new CelFailure("cannot convert value to integer");
  }
  return quantity.nano / NANO;
}
