import { Quantity } from "@coracle/operator/client";

/** Error of a text that is no quantity, with the message of Go's parser. */
class QuantityError extends Error {
  override readonly name = "QuantityError";
}

const PATTERN = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/;

/**
 * Parses a quantity as Go does, which takes an absent number for 0, as in `n`.
 *
 * @throws {QuantityError} If it is invalid.
 */
export function parseQuantity(text: string): Quantity {
  const [, sign, whole, fraction = "", suffix] = PATTERN.exec(text) ?? [];
  if (text === "" || whole === undefined) {
    throw new QuantityError(
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
  }
  try {
    return Quantity.parse(
      whole + fraction === "" ? `${sign}0${suffix}` : text,
    );
  } catch {
    throw new QuantityError("unable to parse quantity's suffix");
  }
}
