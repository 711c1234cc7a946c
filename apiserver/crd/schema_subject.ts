import type { OpenApiSchema } from "../../core/patch/schema.ts";
import type { Correlation } from "./correlation.ts";
import type { Finding, Findings } from "./schema_findings.ts";

/** A value that is being checked, and where it stands. */
export interface Subject {
  readonly value: unknown;
  readonly schema: OpenApiSchema;
  /** Dotted, as `spec.list[0]`; empty for the validated value itself. */
  readonly path: string;
  /** The old value, where an update is checked and there was one. */
  readonly correlation?: Correlation | undefined;
}

/** Joins findings; the same text is told once. */
export function merge(all: readonly Findings[]): Findings {
  const byText = new Map<string, Finding>();
  let matches = 0;
  for (const { list, matches: more } of all) {
    for (const finding of list) {
      const { text } = finding;
      if (!byText.has(text)) byText.set(text, finding);
    }
    matches += more;
  }
  return { list: [...byText.values()], matches };
}

export function found(
  subject: Subject,
  finding: Omit<Finding, "name"> & { readonly name?: string },
): Findings {
  return {
    list: [{ name: subject.path, ...finding }],
    matches: 0,
  };
}
