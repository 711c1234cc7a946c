/** A number with three significant digits, or whole. */
export function digits(value: number): string {
  return value >= 100
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(3)));
}
