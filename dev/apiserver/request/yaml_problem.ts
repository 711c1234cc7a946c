import type { YAMLParseError } from "yaml";

/** What of Go's YAML library finds a problem; a key without a value is found in the next line. */
type Source = "scanner" | "parser" | "key";

/** Problem of a YAML text in the words of Go's library, and its offset in the text. */
interface Problem {
  readonly source: Source;
  readonly what: string;
  readonly at: number;
}

const NO_KEY = "did not find expected key";
const NO_DASH = "did not find expected '-' indicator";
const NO_TOKEN = "found character that cannot start any token";
const NO_VALUE = "mapping values are not allowed in this context";

/** Words of Go's library by the beginning of those of the parser. */
const WORDS: readonly (readonly [theirs: RegExp, Source, what: string])[] = [
  [/^Tabs are not allowed/, "scanner", NO_TOKEN],
  [
    /^Plain value cannot start with flow/,
    "parser",
    "did not find expected node content",
  ],
  [/^Plain value cannot start with/, "scanner", NO_TOKEN],
  [
    /^Block scalar header/,
    "scanner",
    "did not find expected comment or line break",
  ],
  [
    /^(?:Anchor|Alias) cannot be an empty/,
    "scanner",
    "did not find expected alphabetic or numeric character",
  ],
  [/^Verbatim tags/, "scanner", "did not find the expected '>'"],
  [/^The !! tag/, "scanner", "did not find expected tag URI"],
  [/^Could not resolve tag/, "parser", "found undefined tag handle"],
  [
    /^Unexpected block-seq-ind/,
    "scanner",
    "block sequence entries are not allowed in this context",
  ],
  [/^All sequence items/, "parser", NO_DASH],
  [/^All (?:mapping|collection) items/, "parser", NO_KEY],
];

/** Error of a YAML text in the words of Go's YAML library, with its line. */
export function yamlProblem(
  text: string,
  { message, pos: [at] }: YAMLParseError,
): string {
  const { source, what, at: where } = problemOf(text, message, at);
  // Go counts lines from 0, and the scanner adds one but for the first.
  const lines = text.slice(0, where).split("\n");
  let line = lines.length - 1;
  const isEnd = where >= text.length && lines.at(-1) !== "";
  if (source === "parser" && isEnd) line++;
  else if (source === "scanner" && line > 0) line++;
  else if (source === "key") line += 2;
  return line === 0 ? `yaml: ${what}` : `yaml: line ${line}: ${what}`;
}

function problemOf(text: string, message: string, at: number): Problem {
  const end = text.length;
  for (const [theirs, source, what] of WORDS) {
    if (theirs.test(message)) return { source, what, at };
  }
  const flow = /must end with a (.)|and end with a (.)/.exec(message);
  if (flow) {
    const close = flow[1] ?? flow[2];
    return {
      source: "parser",
      what: `did not find expected ',' or '${close}'`,
      at,
    };
  }
  if (message.startsWith("Missing closing")) {
    return {
      source: "scanner",
      what: "found unexpected end of stream",
      at: end,
    };
  }
  const [, escape] = /^Invalid escape sequence \\(.)/.exec(message) ?? [];
  if (escape !== undefined) {
    return { source: "scanner", what: wrongEscape(text, at), at };
  }
  if (
    message.startsWith("Implicit map keys need") ||
    /^-[^\s-]/.test(text.slice(at))
  ) return { source: "key", what: "could not find expected ':'", at };
  if (message.startsWith("Missing directives-end")) {
    const what = "found unknown directive name";
    return { source: "scanner", what, at: text.search(/^%/m) };
  }
  if (/^(?:Nested mappings|Implicit keys)/.test(message)) {
    if (/^\?\s/.test(text.slice(at))) {
      const what = "mapping keys are not allowed in this context";
      return { source: "scanner", what, at };
    }
    if (/^-\s/.test(text.slice(at))) {
      return { source: "parser", what: NO_KEY, at };
    }
    const colon = text.slice(at).search(/:(?:\s|$)/);
    return { source: "scanner", what: NO_VALUE, at: at + Math.max(colon, 0) };
  }
  if (message.startsWith("Unexpected flow-")) {
    return { source: "parser", what: "did not find expected node content", at };
  }
  return { source: "parser", what: inList(text, at) ? NO_DASH : NO_KEY, at };
}

/** What is wrong with an escape in double quotes at or behind an offset. */
function wrongEscape(text: string, at: number): string {
  const [, kind = "", digits = ""] =
    /\\([xuU])([0-9a-fA-F]*)/.exec(text.slice(at)) ?? [];
  if (kind === "") return "found unknown escape character";
  const wanted = { x: 2, u: 4, U: 8 }[kind] ?? 0;
  return digits.length < wanted
    ? "did not find expected hexdecimal number"
    : "found invalid Unicode character escape code";
}

/** Whether what stands at an offset follows the items of a list in its column. */
function inList(text: string, at: number): boolean {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const column = at - start;
  const before = text.slice(0, start).split("\n").reverse()
    .find((line) => line.trim() !== "" && line.search(/\S/) <= column);
  return before !== undefined && before.search(/\S/) === column &&
    /^-\s/.test(before.trimStart());
}

/** Characters that YAML forbids: all controls but for tabs, line breaks and next line. */
export const CONTROLS: RegExp = // deno-lint-ignore no-control-regex -- the controls
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]/u;
