import { fieldSelectorText } from "../api/field_selector.ts";
import { labelSelectorText } from "../api/label_selector.ts";
import type { SelectionOptions, WriteOptions } from "./request_options.ts";

/** What a query may hold; `undefined` is left out. */
export type QueryValue = string | number | boolean | undefined;

/** Adds a query to a path. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, QueryValue | readonly string[]>>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) {
      search.append(name, String(item));
    }
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The query that selects objects. */
export function selectionQuery(
  options: SelectionOptions,
): Record<string, QueryValue> {
  const { labelSelector, fieldSelector, shardSelector } = options;
  return {
    labelSelector: labelSelector === undefined
      ? undefined
      : labelSelectorText(labelSelector) || undefined,
    fieldSelector: fieldSelector === undefined
      ? undefined
      : fieldSelectorText(fieldSelector) || undefined,
    shardSelector,
  };
}

/** The query that says how to write. */
export function writeQuery(options: WriteOptions): Record<string, QueryValue> {
  const { fieldManager, fieldValidation } = options;
  return {
    dryRun: options.dryRun ? "All" : undefined,
    fieldManager,
    fieldValidation,
  };
}
