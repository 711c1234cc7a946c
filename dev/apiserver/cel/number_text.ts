/**
 * Double as Go's `%g` prints it: the shortest digits, in scientific notation for
 * exponents below -4 or from 6 digits on.
 */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [digits = "", power = ""] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return String(value);
  const sign = exponent < 0 ? "-" : "+";
  return `${digits}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** Double of a text in Go's syntax; undefined if it is invalid or out of range. */
export function parseDouble(text: string): number | undefined {
  const special = /^([+-]?)(?:inf(?:inity)?|(nan))$/i.exec(text);
  if (special) {
    const [, sign, nan] = special;
    if (nan !== undefined) return sign === "" ? NaN : undefined;
    return sign === "-" ? -Infinity : Infinity;
  }
  // An underscore may separate digits.
  if (/(?<![\da-fA-F])_|_(?![\da-fA-F])/.test(text)) return undefined;
  const plain = text.replaceAll("_", "");
  const value = /^[+-]?0[xX]/.test(plain)
    ? hexadecimal(plain)
    : /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(plain)
    ? Number(plain)
    : NaN;
  return Number.isFinite(value) ? value : undefined;
}

function hexadecimal(text: string): number {
  const [, sign = "", whole = "", fraction = "", power = ""] =
    /^([+-]?)0[xX]([\da-fA-F]*)\.?([\da-fA-F]*)[pP]([+-]?\d+)$/.exec(text) ??
      [];
  if (whole + fraction === "") return NaN;
  const size = Number.parseInt(whole + fraction, 16) *
    2 ** (Number(power) - 4 * fraction.length);
  return sign === "-" ? -size : size;
}
