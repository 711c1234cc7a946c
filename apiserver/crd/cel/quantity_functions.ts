import type { Environment } from "@marcbachmann/cel-js";
import { Quantity } from "../../../core/api/quantity.ts";
import { CelFailure } from "./cel_failure.ts";

const NANO = 1_000_000_000n;
const LARGEST_INT = 2n ** 63n - 1n;

/** Registers `quantity()` and the methods of quantities. */
export function registerQuantityFunctions(environment: Environment): void {
  environment
    .registerType("kubernetes.Quantity", { ctor: Quantity })
    .registerFunction(
      "quantity(string): kubernetes.Quantity",
      (text: string) => parse(text),
    )
    .registerFunction(
      "isQuantity(string): bool",
      (text: string) => Quantity.is(text),
    )
    .registerFunction(
      "sign(kubernetes.Quantity): int",
      ({ nano }: Quantity) => nano > 0n ? 1n : nano < 0n ? -1n : 0n,
    )
    .registerFunction("kubernetes.Quantity.isInteger(): bool", isInteger)
    .registerFunction("kubernetes.Quantity.asInteger(): int", asInteger)
    .registerFunction(
      "kubernetes.Quantity.asApproximateFloat(): double",
      (quantity: Quantity) => quantity.toNumber(),
    )
    .registerOperator(
      "kubernetes.Quantity == kubernetes.Quantity",
      (a: Quantity, b: Quantity) => a.nano === b.nano,
    );
  const comparisons = {
    isLessThan: (order: number) => order < 0,
    isGreaterThan: (order: number) => order > 0,
  };
  for (const [name, holds] of Object.entries(comparisons)) {
    environment.registerFunction(
      `kubernetes.Quantity.${name}(kubernetes.Quantity): bool`,
      (a: Quantity, b: Quantity) => holds(a.compare(b)),
    );
  }
  environment.registerFunction(
    "kubernetes.Quantity.compareTo(kubernetes.Quantity): int",
    (a: Quantity, b: Quantity) => BigInt(Math.sign(a.compare(b))),
  );
  for (const type of ["kubernetes.Quantity", "int"]) {
    environment
      .registerFunction(
        `kubernetes.Quantity.add(${type}): kubernetes.Quantity`,
        (a: Quantity, b: Quantity | bigint) => a.plus(parse(b)),
      )
      .registerFunction(
        `kubernetes.Quantity.sub(${type}): kubernetes.Quantity`,
        (a: Quantity, b: Quantity | bigint) => a.plus(negated(parse(b))),
      );
  }
}

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
