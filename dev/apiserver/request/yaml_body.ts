import type { Node, Scalar } from "yaml";
import { loadModule } from "@coracle/operator/internal";
import { MAX_DEPTH, notJson } from "./json_body.ts";
import { fieldName, type GoScalar, goScalar, goSyntax } from "./yaml_scalar.ts";
import { CONTROLS, yamlProblem } from "./yaml_problem.ts";
import { isInteger, readJson, writeJson } from "../exact_json.ts";

/** Parsed YAML document. */
export interface ParsedYaml {
  readonly value: unknown;
  /** Duplicate fields, as messages of Go's YAML library. */
  readonly problems: readonly string[];
}

/**
 * Parses the first document of a YAML text as Kubernetes does: YAML 1.1, merge
 * keys, no timestamps, names of fields as text, and a limit on alias expansion.
 *
 * @throws {SyntaxError} If it is not YAML, nested too deeply, or no JSON.
 */
export async function parseYaml(text: string): Promise<ParsedYaml> {
  if (CONTROLS.test(text)) {
    throw notJson("yaml: control characters are not allowed");
  }
  const { isCollection, isScalar, LineCounter, parseAllDocuments, visit } =
    await loadModule(import("yaml"));
  const lineCounter = new LineCounter();
  const [document] = parseAllDocuments(text, {
    uniqueKeys: false,
    schema: "failsafe",
    merge: true,
    lineCounter,
  });
  if (document === undefined || !("errors" in document)) {
    return { value: null, problems: [] };
  }
  const [error] = document.errors;
  if (error) throw notJson(yamlProblem(text, error));
  const problems: string[] = [];
  const shown = (node: unknown) =>
    goSyntax((node as Node | null)?.toJS(document));
  /** Reasons why it is no JSON, told when all scalars are read. */
  const refusals: (() => string)[] = [];
  visit(document, {
    Map(_, map, path) {
      if (path.length > MAX_DEPTH * 2) {
        throw notJson("yaml: exceeded max depth");
      }
      const names = new Set<string>();
      for (const { key, value } of map.items) {
        if (isCollection(key)) {
          refusals.unshift(() => `yaml: invalid map key: ${shown(key)}`);
        }
        if (!isScalar(key) || isMerge(key)) continue;
        const read = readScalar(key);
        const name = fieldName(read);
        if (name === undefined) {
          const type = read === null ? "%!s(<nil>)" : "uint64";
          const what = read === null ? "<nil>" : `0x${read.toString(16)}`;
          refusals.push(() =>
            `unsupported map key of type: ${type}, key: ${what}, value: ${
              shown(value)
            }`
          );
        } else key.value = name;
        const known = `${typeof read} ${read}`;
        if (names.has(known)) {
          const { line } = lineCounter.linePos(key.range?.[0] ?? 0);
          problems.push(
            `line ${line}: key ${goSyntax(read)} already set in map`,
          );
        }
        names.add(known);
      }
    },
    Alias(_, alias, path) {
      const name = alias.source;
      if (path.some((node) => "anchor" in node && node.anchor === name)) {
        throw notJson(`yaml: anchor '${name}' value contains itself`);
      }
    },
    Scalar(place, scalar) {
      if (place === "key") return;
      const read = readScalar(scalar);
      scalar.value = typeof read === "bigint" && isInteger(Number(read))
        ? Number(read)
        : read;
      if (typeof read !== "number" || Number.isFinite(read)) return;
      const number = Number.isNaN(read) ? "NaN" : read > 0 ? "+Inf" : "-Inf";
      refusals.push(() => `json: unsupported value: ${number}`);
    },
  });
  const [refusal] = refusals;
  if (refusal !== undefined) throw notJson(refusal());
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw notJson(`yaml: ${expansionProblem((error as Error).message)}`);
  }
  return { value: readJson(writeJson(value)), problems };
}

/** Problem of aliases and merged maps in the words of Go's library. */
function expansionProblem(message: string): string {
  const alias = /^Unresolved alias.*: (.*)/.exec(message);
  return alias
    ? `unknown anchor '${alias[1]}' referenced`
    : message.startsWith("Merge sources")
    ? "map merge requires map or sequence of maps as the value"
    : message.startsWith("Excessive alias count")
    ? "document contains excessive aliasing"
    : message;
}

/** Whether a key merges the fields of another map. */
function isMerge({ source, tag, type }: Scalar): boolean {
  return source === "<<" && type === "PLAIN" && tag === undefined;
}

function readScalar({ source = "", tag = "", type }: Scalar): GoScalar {
  return type !== "PLAIN" && tag === "" ? source : goScalar(source, tag);
}
