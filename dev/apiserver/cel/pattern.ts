import { loadModule } from "@coracle/operator/internal";
import type * as Re2Module from "re2js";

/**
 * Go's regular expressions (RE2), which match in linear time whatever the pattern
 * is, with Go's messages for patterns that are none.
 *
 * @module
 */

/** Regular expression, or the reason why a pattern is invalid. */
export interface Pattern {
  /** Whether a text contains a match. */
  test(text: string): boolean;
  /** First matches in a text, at most a number of them; all if it is negative. */
  find(text: string, most: number): readonly string[];
  /** Reason why the pattern is invalid, as Go says it. */
  readonly problem: string | undefined;
}

let library: typeof Re2Module | undefined;

/**
 * Loads the library of regular expressions. This takes tens of milliseconds, so a
 * server loads it only when something has patterns or CEL expressions.
 */
export async function loadPatterns(): Promise<void> {
  library ??= await loadModule(import("re2js"));
}

/** Maximum number of cached patterns, which bounds memory. */
const MAX_CACHED = 1_000;

const compiled = new Map<string, Pattern>();

/**
 * Compiles a pattern.
 *
 * @throws {ReferenceError} If {@linkcode loadPatterns} has not loaded the library.
 */
export function pattern(source: string): Pattern {
  let known = compiled.get(source);
  if (known === undefined) {
    if (compiled.size >= MAX_CACHED) compiled.clear();
    known = compile(source);
    compiled.set(source, known);
  }
  return known;
}

function compile(source: string): Pattern {
  if (library === undefined) {
    throw new ReferenceError(
      "Cannot compile a regular expression: its library is not loaded",
    );
  }
  const { RE2JS, RE2JSSyntaxException } = library;
  try {
    const re2 = RE2JS.compile(source);
    return {
      test: (text) => re2.test(text),
      find: (text, most) => {
        const found: string[] = [];
        const matcher = re2.matcher(text);
        let end = -1;
        while (found.length !== most && matcher.find()) {
          // Go finds no empty match where another one ends.
          const group = matcher.group() ?? "";
          if (group !== "" || matcher.start() !== end) found.push(group);
          end = matcher.end();
        }
        return found;
      },
      problem: undefined,
    };
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error;
    return { test: () => false, find: () => [], problem: error.message };
  }
}
