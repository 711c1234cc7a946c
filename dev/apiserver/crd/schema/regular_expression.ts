/**
 * Go's regular expressions (RE2), compiled to those of JavaScript. The two
 * syntaxes differ in a few spellings; patterns that RE2 rejects are rejected
 * here, too.
 *
 * @module
 */

/** Lookaround and backreferences, which RE2 does not support. */
const NOT_IN_RE2 = /\(\?<?[=!]|\\[1-9]|\\k</;

/** Maximum number of cached patterns, which bounds memory. */
const MAX_CACHED_PATTERNS = 1_000;

const compiled = new Map<string, RegExp | undefined>();

/** Compiles a pattern; returns undefined if Go would reject it. */
export function goRegExp(pattern: string): RegExp | undefined {
  if (!compiled.has(pattern)) {
    if (compiled.size >= MAX_CACHED_PATTERNS) compiled.clear();
    compiled.set(pattern, compile(pattern));
  }
  return compiled.get(pattern);
}

/** Reason why Go rejects a pattern, with Go's message where it can be derived. */
export function goRegExpProblem(pattern: string): string {
  const perl = NOT_IN_RE2.exec(pattern.replaceAll("\\\\", ""));
  if (perl) {
    const escape = perl[0].startsWith("\\");
    return escape
      ? `error parsing regexp: invalid escape sequence: \`${perl[0]}\``
      : `error parsing regexp: invalid or unsupported Perl syntax: \`${
        perl[0]
      }\``;
  }
  const plain = pattern.replace(/\\.|\[(?:\\.|[^\]])*\]/g, "");
  const open = plain.split("(").length - plain.split(")").length;
  const why = open > 0
    ? "missing closing )"
    : open < 0
    ? "unexpected )"
    : plain.includes("[")
    ? "missing closing ]"
    : "invalid nested repetition operator";
  return `error parsing regexp: ${why}: \`${pattern}\``;
}

function compile(pattern: string): RegExp | undefined {
  if (NOT_IN_RE2.test(pattern.replaceAll("\\\\", ""))) return undefined;
  const { source, flags } = translate(pattern);
  // Unicode mode counts code points as Go does, but rejects unnecessary escapes,
  // which Go allows.
  for (const mode of ["u", ""]) {
    try {
      return new RegExp(source, flags + mode);
    } catch {
      // The next mode may accept the pattern.
    }
  }
  return undefined;
}

/** Translates a pattern from Go's syntax to JavaScript's. */
function translate(pattern: string): { source: string; flags: string } {
  const [all = "", anchor = "", flags = ""] =
    /^(\^(?=\(\?[is]+\)))?\(\?([ims]+)\)/.exec(pattern) ?? [];
  const source = withGroups(anchor + pattern.slice(all.length))
    .replaceAll("(?P<", "(?<")
    .replace(/\[\[:(\w+):\]\]/g, (whole, name: string) => {
      const members = POSIX[name];
      return members === undefined ? whole : `[${members}]`;
    })
    .replace(/\[:(\w+):\]/g, (whole, name: string) => POSIX[name] ?? whole)
    .replaceAll("\\A", "^")
    .replaceAll("\\z", "$")
    .replace(
      /\\Q(.*?)(?:\\E|$)/g,
      (_, text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
    )
    .replace(/\\p([LNPSZCM])/g, "\\p{$1}")
    .replace(
      /\\([-_@#%&=:;,<>~!"'`/ ])/g,
      (_, character: string) =>
        character === "-" ? "\\-" : character === "/" ? "\\/" : character,
    );
  return { source, flags };
}

/**
 * Puts what follows flags such as `(?i)` into a group with the flags, because
 * JavaScript has flags of groups only. They hold to the end of the group around
 * them, in each of its alternatives.
 */
function withGroups(pattern: string): string {
  /** Flags in each open group of the pattern. */
  const groups: string[][] = [[]];
  let result = "";
  const parts =
    /\\Q.*?(?:\\E|$)|\\.|\[\]?(?:\[:\w+:\]|\\.|[^\]])*\]|\(\?[ims]*(?:-[ims]+)?\)|[()|]|[^\\[()|]+|./gs;
  for (const [part] of pattern.matchAll(parts)) {
    const flags = groups.at(-1) ?? [];
    if (/^\(\?.*\)$/s.test(part)) {
      const opening = `${part.slice(0, -1)}:`;
      flags.push(opening);
      result += opening;
      continue;
    }
    const ends = part === "|" || part === ")";
    result += (ends ? ")".repeat(flags.length) : "") + part;
    if (part === "|") result += flags.join("");
    else if (part === ")") groups.pop();
    else if (part === "(") groups.push([]);
  }
  return result + ")".repeat(groups[0]?.length ?? 0);
}

/** POSIX character classes that RE2 supports within brackets. */
const POSIX: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7F",
  blank: "\\t ",
  cntrl: "\\x00-\\x1F\\x7F",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@[-`{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};
