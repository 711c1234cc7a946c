import { loadModule } from "../../core/clock.ts";
import { MAX_DEPTH, notJson } from "./json_body.ts";

/** Parsed YAML document. */
export interface ParsedYaml {
  readonly value: unknown;
  /** Duplicate fields, as messages of Go's YAML library. */
  readonly problems: readonly string[];
}

/**
 * Parses the first document of a YAML text as Kubernetes does: YAML 1.1, merge
 * keys, no timestamps, and a limit on alias expansion.
 *
 * @throws {SyntaxError} If it is not YAML or nested too deeply.
 */
export async function parseYaml(text: string): Promise<ParsedYaml> {
  const { isScalar, LineCounter, parseAllDocuments, visit } = await loadModule(
    import("yaml"),
  );
  const lineCounter = new LineCounter();
  const [document] = parseAllDocuments(text, {
    uniqueKeys: false,
    schema: "yaml-1.1",
    merge: true,
    lineCounter,
    customTags: (tags) => tags.filter((tag) => tag !== "timestamp"),
  });
  if (document === undefined || !("errors" in document)) {
    return { value: null, problems: [] };
  }
  const [error] = document.errors;
  if (error) throw notJson(error.message.split("\n")[0] ?? "");
  const problems: string[] = [];
  visit(document, {
    Map(_, map, path) {
      if (path.length > MAX_DEPTH * 2) throw notJson("exceeded max depth");
      const names = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (names.has(key.value)) {
          const { line } = lineCounter.linePos(key.range?.[0] ?? 0);
          problems.push(
            `line ${line}: key ${
              JSON.stringify(String(key.value))
            } already set in map`,
          );
        }
        names.add(key.value);
      }
    },
  });
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw notJson((error as Error).message);
  }
  // Keys that are not strings become strings, as in JSON.
  return { value: JSON.parse(JSON.stringify(value ?? null)), problems };
}
