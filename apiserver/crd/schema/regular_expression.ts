/**
 * Go's regular expressions (RE2) read as JavaScript's. The two agree but for a
 * few spellings; what RE2 refuses is refused here too.
 */

/** Look-around and back references, which RE2 has not. */
const NOT_IN_RE2 = /\(\?<?[=!]|\\[1-9]|\\k</;

/** Compiled patterns are few and come back often; the bound is for hostile use. */
const MOST_COMPILED = 1_000;

const compiled = new Map<string, RegExp | undefined>();

/** Compiles a pattern; undefined if Go would refuse it. */
export function goRegExp(pattern: string): RegExp | undefined {
  if (!compiled.has(pattern)) {
    if (compiled.size >= MOST_COMPILED) compiled.clear();
    compiled.set(pattern, compile(pattern));
  }
  return compiled.get(pattern);
}

/** Why Go refuses a pattern, in its words as far as they can be known. */
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
  // Unicode mode counts in characters as Go does; it refuses escapes of
  // characters that need none, which Go allows.
  for (const mode of ["u", ""]) {
    try {
      return new RegExp(source, flags + mode);
    } catch {
      // The next mode may take it.
    }
  }
  return undefined;
}

/** Go's spellings of what JavaScript writes otherwise. */
function translate(pattern: string): { source: string; flags: string } {
  const leading = /^\(\?([ims]+)\)/.exec(pattern);
  const source = (leading ? pattern.slice(leading[0].length) : pattern)
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
  return { source, flags: leading?.[1] ?? "" };
}

/** The classes of POSIX that RE2 knows within brackets. */
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
