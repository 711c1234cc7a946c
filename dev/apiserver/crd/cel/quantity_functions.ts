import { Quantity } from "@coracle/operator/client";
import { CelFailure } from "./cel_failure.ts";
import type { CelExtension } from "./cel_library.ts";

const NANO = 1_000_000_000n;
const LARGEST_INT = 2n ** 63n - 1n;

const TYPE = "kubernetes.Quantity";

/** CEL function `quantity()`, with the methods of quantities. */
export const QUANTITIES: CelExtension = {
  types: { [TYPE]: Quantity },
  functions: {
    [`quantity(string): ${TYPE}`]: parse,
    "isQuantity(string): bool": (text: string) => Quantity.is(text),
    [`sign(${TYPE}): int`]: ({ nano }: Quantity) =>
      nano > 0n ? 1n : nano < 0n ? -1n : 0n,
    [`${TYPE}.isInteger(): bool`]: isInteger,
    [`${TYPE}.asInteger(): int`]: asInteger,
    [`${TYPE}.asApproximateFloat(): double`]: (quantity: Quantity) =>
      quantity.toNumber(),
    [`${TYPE} == ${TYPE}`]: (a: Quantity, b: Quantity) => a.nano === b.nano,
    [`${TYPE}.isLessThan(${TYPE}): bool`]: (a: Quantity, b: Quantity) =>
      a.compare(b) < 0,
    [`${TYPE}.isGreaterThan(${TYPE}): bool`]: (a: Quantity, b: Quantity) =>
      a.compare(b) > 0,
    [`${TYPE}.compareTo(${TYPE}): int`]: (a: Quantity, b: Quantity) =>
      BigInt(Math.sign(a.compare(b))),
    ...Object.fromEntries([TYPE, "int"].flatMap((type) => [
      [
        `${TYPE}.add(${type}): ${TYPE}`,
        (a: Quantity, b: Quantity | bigint) => a.plus(parse(b)),
      ],
      [
        `${TYPE}.sub(${type}): ${TYPE}`,
        (a: Quantity, b: Quantity | bigint) => a.plus(negated(parse(b))),
      ],
    ])),
  },
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
