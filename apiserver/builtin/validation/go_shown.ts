import type { LabelSelector } from "../../../core/kinds/meta_v1.ts";

/** Labels as Go formats a map of strings. */
export function shownLabels(
  labels: Record<string, string> | undefined,
): string {
  if (labels === undefined) return "map[string]string(nil)";
  const entries = Object.keys(labels).sort().map((name) =>
    `${JSON.stringify(name)}:${JSON.stringify(labels[name])}`
  );
  return `map[string]string{${entries.join(", ")}}`;
}

/** Texts as Go formats a slice of strings. */
export function shownTexts(texts: readonly string[] | undefined): string {
  return texts === undefined
    ? "[]string(nil)"
    : `[]string{${texts.map((text) => JSON.stringify(text)).join(", ")}}`;
}

/** Label selector as Go formats it. */
export function shownSelector(selector: LabelSelector): string {
  const { matchLabels, matchExpressions } = selector;
  const expressions = matchExpressions?.map(({ key, operator, values }) =>
    `v1.LabelSelectorRequirement{Key:${JSON.stringify(key)}, Operator:${
      JSON.stringify(operator)
    }, Values:${shownTexts(values)}}`
  );
  return `v1.LabelSelector{MatchLabels:${
    shownLabels(matchLabels)
  }, MatchExpressions:[]v1.LabelSelectorRequirement${
    expressions ? `{${expressions.join(", ")}}` : "(nil)"
  }}`;
}

/** Number or text as Go formats an `IntOrString`. */
export function shownIntOrString(value: number | string): string {
  return typeof value === "number"
    ? `intstr.IntOrString{Type:0, IntVal:${value}, StrVal:""}`
    : `intstr.IntOrString{Type:1, IntVal:0, StrVal:${JSON.stringify(value)}}`;
}
