import {
  labelRequirements,
  type LabelSelector,
} from "../../../core/api/selector.ts";
import type { Container } from "../../../core/kinds/core_v1.ts";
import { humanAge } from "../../human_duration.ts";

/** What the columns of a kind show of one of its objects. */
export type Printer = (
  object: never,
  now: number,
) => readonly unknown[];

/** The part of an object that every printer shows. */
interface Named {
  readonly metadata: {
    readonly name?: string | undefined;
    readonly creationTimestamp?: string | undefined;
  };
}

/** The name of an object. */
export function nameOf({ metadata }: Named): string {
  return metadata.name ?? "";
}

/** How long ago an object was made. */
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
 * A selector with its conditions sorted by their labels, as the Deployments'
 * column shows it: empty if it selects everything, or nothing.
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
      .sort((one, other) => compare(one.key, other.key))
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

/** A selector as most columns show it, where an empty one has a word too. */
export function selectorCell(selector: LabelSelector | undefined): string {
  const text = selectorText(selector);
  return text === "<invalid>" ? "<error>" : text || "<none>";
}

/** The names and the images of containers: two cells. */
export function containerCells(
  containers: readonly Container[] | undefined,
): readonly [string, string] {
  const join = (texts: readonly (string | undefined)[]) => texts.join(",");
  return [
    join((containers ?? []).map(({ name }) => name)),
    join((containers ?? []).map(({ image }) => image)),
  ];
}

/** The first three, and how many more there are. */
export function firstThree(texts: readonly string[]): string {
  const shown = texts.slice(0, 3).join(",");
  return texts.length > 3 ? `${shown} + ${texts.length - 3} more...` : shown;
}

/** The order of texts that Go sorts them in, for the texts that occur here. */
export function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
