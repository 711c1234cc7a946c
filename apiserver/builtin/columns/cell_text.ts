import {
  labelRequirements,
  type LabelSelector,
} from "../../../core/api/label_selector.ts";
import type { Container } from "../../../core/kinds/core_v1.ts";
import { humanAge } from "../../human_duration.ts";

/** Returns the table cells of an object of one kind. */
export type Printer = (
  object: never,
  now: number,
) => readonly unknown[];

/** Object with the metadata that every printer reads. */
interface Named {
  readonly metadata: {
    readonly name?: string | undefined;
    readonly creationTimestamp?: string | undefined;
  };
}

/** Name of an object. */
export function nameOf({ metadata }: Named): string {
  return metadata.name ?? "";
}

/** Age of an object as text; `now` is in milliseconds since the epoch. */
export function ageOf({ metadata }: Named, now: number): string {
  return humanAge(metadata.creationTimestamp, now);
}

/** Labels as `a=1,b=2`, sorted. */
export function labelsText(
  labels: Readonly<Record<string, string>> | undefined,
): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) =>
    `${key}=${value}`
  );
  return pairs.sort().join(",") || "<none>";
}

/**
 * Selector as text with its requirements sorted by key, as the column of
 * Deployments shows it; empty if the selector is empty or absent.
 */
export function selectorText(selector: LabelSelector | undefined): string {
  if (selector === undefined) return "";
  const { matchLabels, matchExpressions = [] } = selector;
  try {
    const labels = Object.entries(matchLabels ?? {}).map((
      [key, value],
    ) => ({ key, text: `${key}=${value}` }));
    const expressions = labelRequirements({ matchExpressions }).map((
      { key, operator, values },
    ) => ({ key, text: conditionText(key, operator, values) }));
    return [...labels, ...expressions]
      .sort((a, b) => compare(a.key, b.key))
      .map(({ text }) => text)
      .join(",");
  } catch {
    return "<invalid>";
  }
}

function conditionText(
  key: string,
  operator: string,
  values: readonly string[],
): string {
  if (operator === "Exists") return key;
  if (operator === "DoesNotExist") return `!${key}`;
  const list = [...values].sort().join(",");
  return `${key} ${operator === "In" ? "in" : "notin"} (${list})`;
}

/** Selector as text for most columns, with `<none>` for an empty one. */
export function selectorCell(selector: LabelSelector | undefined): string {
  const text = selectorText(selector);
  return text === "<invalid>" ? "<error>" : text || "<none>";
}

/** Two cells: the names and the images of the containers. */
export function containerCells(
  containers: readonly Container[] | undefined,
): readonly [string, string] {
  const join = (texts: readonly (string | undefined)[]) => texts.join(",");
  return [
    join((containers ?? []).map(({ name }) => name)),
    join((containers ?? []).map(({ image }) => image)),
  ];
}

/** First three texts and the number of the others. */
export function firstThree(texts: readonly string[]): string {
  const shown = texts.slice(0, 3).join(",");
  return texts.length > 3 ? `${shown} + ${texts.length - 3} more...` : shown;
}

/** Compares texts by code unit, as Go sorts them. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
