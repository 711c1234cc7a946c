import { readFileSync } from "node:fs";
import type { StatusCause } from "../../../core/api/api_error.ts";

/** The lines of a file in `data`: what apiextensions of 1.32 answered. */
export function recordedLines<T>(name: string): T[] {
  const url = new URL(`./data/${name}.ndjson`, import.meta.url);
  return readFileSync(url, "utf8").trim().split("\n")
    .map((line) => JSON.parse(line) as T);
}

/** Causes as text, in one order: a real server walks maps at random. */
export function causeTexts(causes: readonly StatusCause[]): string[] {
  return causes.map(({ reason, field, message }) =>
    `${reason} ${field}: ${message}`
  ).sort();
}
