import { readFileSync } from "node:fs";
import type { StatusCause } from "@coracle/operator/core";

/** Lines of a file in `data`, recorded from apiextensions-apiserver 1.36. */
export function recordedLines<T>(name: string): T[] {
  const url = new URL(`./data/${name}.ndjson`, import.meta.url);
  return readFileSync(url, "utf8").trim().split("\n")
    .map((line) => JSON.parse(line) as T);
}

/** Causes as sorted texts; a real server iterates over maps in random order. */
export function causeTexts(causes: readonly StatusCause[]): string[] {
  return causes.map(({ reason, field, message }) =>
    `${reason} ${field}: ${message}`
  ).sort();
}
