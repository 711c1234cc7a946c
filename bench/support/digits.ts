/** Text of a number with three significant digits, or as an integer. */
export function digits(value: number): string {
  return value >= 100
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(3)));
}
