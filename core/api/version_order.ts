import { compareTexts } from "../text_order.ts";

/**
 * Compares API versions by upstream's version priority: stable before beta
 * before alpha, newer before older; other names follow in alphabetical order.
 */
export function compareVersions(a: string, b: string): number {
  const rank = (version: string) => {
    const [, major = "0", stage, minor = "0"] =
      /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
    const level = version.match(/^v\d+(?:(?:alpha|beta)\d+)?$/) === null
      ? 0
      : stage === "alpha"
      ? 1
      : stage === "beta"
      ? 2
      : 3;
    return [level, Number(major), Number(minor)] as const;
  };
  const left = rank(a);
  const right = rank(b);
  for (const index of [0, 1, 2] as const) {
    if (left[index] !== right[index]) return right[index] - left[index];
  }
  return compareTexts(a, b);
}
