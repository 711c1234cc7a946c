/**
 * Finds the doc comments of TypeScript source with the symbol that each
 * documents: declarations, members, private ones too, and modules.
 *
 * @module
 */

/** One doc comment. */
export interface DocComment {
  /** Name of the symbol, behind the name of its class or interface. */
  readonly symbol: string;
  /** Kind of the symbol: `class`, `method`, `property`, `module` and so on. */
  readonly kind: string;
  /** Text of the comment without its asterisks. */
  readonly text: string;
}

interface Declaration {
  readonly name: string;
  readonly kind: string;
}

const MODIFIERS_REGEXP =
  /^(?:(?:export|default|declare|abstract|async|static|override|readonly|public|private|protected|accessor)\s+(?![:?(=<]))*/;
const DECLARATION_REGEXP =
  /^(class|interface|type|function|const|let|enum|namespace)\b\s*\*?\s*([\w$]+)/;
const ACCESSOR_REGEXP = /^(?:get|set)\s+([#\w$]+|\[[^\]]+\])\s*\(/;
const MEMBER_REGEXP = /^\*?\s*(#?[\w$]+|"[^"]+"|\[[^\]]+\])\s*([?!]?)\s*(.?)/;
/** What a slash follows that begins a regular expression. */
const BEFORE_REGEXP_REGEXP =
  /(?:^|[(,=:[!&|?{};+\-*%<>~^\n]|\b(?:return|typeof|case|in|of|yield|await))\s*$/;

/**
 * Doc comments of a file in the order of their places.
 *
 * @param text The source, as `deno fmt` formats it.
 * @param file The name that comments with `@module` get.
 */
export function docComments(text: string, file: string): readonly DocComment[] {
  const found: DocComment[] = [];
  for (const { start, end } of blockComments(text)) {
    const source = text.slice(start, end);
    if (!source.startsWith("/**") || source === "/**/") continue;
    const comment = source.slice(3, -2).split("\n")
      .map((line) => line.replace(/^\s*\* ?/, "").trimEnd()).join("\n").trim();
    if (/^@module\b/m.test(comment)) {
      const body = comment.replace(/^@module\b.*$/m, "").trim();
      if (body !== "") found.push({ symbol: file, kind: "module", text: body });
      continue;
    }
    const declaration = declarationAt(text.slice(end, end + 2_000));
    if (declaration === undefined) continue;
    const indent = start - (text.lastIndexOf("\n", start) + 1);
    const owner = indent === 0 ? undefined : ownerBefore(text, start);
    const symbol = owner === undefined
      ? declaration.name
      : `${owner}.${declaration.name}`;
    found.push({ symbol, kind: declaration.kind, text: comment });
  }
  return found;
}

/** The declaration that a text begins with, behind comments. */
function declarationAt(text: string): Declaration | undefined {
  const code = text.replace(/^(?:\s+|\/\/.*\n|\/\*[^]*?\*\/)*/, "");
  const rest = code.replace(MODIFIERS_REGEXP, "");
  const [, keyword, declared] = DECLARATION_REGEXP.exec(rest) ?? [];
  if (keyword !== undefined && declared !== undefined) {
    const kind = keyword === "let"
      ? "variable"
      : keyword === "const"
      ? "constant"
      : keyword;
    return { name: declared, kind };
  }
  const accessor = ACCESSOR_REGEXP.exec(rest)?.[1];
  if (accessor !== undefined) return { name: accessor, kind: "accessor" };
  const [, name, , next] = MEMBER_REGEXP.exec(rest) ?? [];
  if (name === undefined) return undefined;
  if (name === "constructor") return { name, kind: "constructor" };
  const method = next === "(" || next === "<";
  return { name, kind: method ? "method" : "property" };
}

/** The name of the declaration at the margin that a place is within. */
function ownerBefore(text: string, place: number): string | undefined {
  const lines = text.slice(0, place).split("\n").toReversed();
  for (const line of lines) {
    if (!/^[a-z]/.test(line)) continue;
    const declaration = declarationAt(line);
    if (declaration !== undefined) return declaration.name;
  }
  return undefined;
}

/** Places of block comments; those in strings and templates are none. */
function* blockComments(
  text: string,
): Generator<{ readonly start: number; readonly end: number }> {
  let at = 0;
  /** Depth of braces for each template literal whose hole is open. */
  const holes: number[] = [];
  while (at < text.length) {
    const character = text[at] ?? "";
    if (text.startsWith("//", at)) at = endOf(text, "\n", at);
    else if (text.startsWith("/*", at)) {
      const end = endOf(text, "*/", at + 2);
      yield { start: at, end };
      at = end;
    } else if (character === '"' || character === "'") {
      at = closing(text, at + 1, character);
    } else if (
      character === "/" &&
      BEFORE_REGEXP_REGEXP.test(text.slice(Math.max(0, at - 20), at))
    ) at = regExpEnd(text, at + 1);
    else if (character === "`" || (character === "}" && holes.at(-1) === 0)) {
      if (character === "}") holes.pop();
      const end = templateEnd(text, at + 1);
      if (text.startsWith("${", end - 2)) holes.push(0);
      at = end;
    } else {
      const depth = holes.length - 1;
      if (depth >= 0 && character === "{") {
        holes[depth] = (holes[depth] ?? 0) + 1;
      }
      if (depth >= 0 && character === "}") {
        holes[depth] = (holes[depth] ?? 0) - 1;
      }
      at++;
    }
  }
}

function endOf(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from);
  return found < 0 ? text.length : found + end.length;
}

/** Behind the quote that closes a string. */
function closing(text: string, from: number, quote: string): number {
  let at = from;
  while (at < text.length && text[at] !== quote && text[at] !== "\n") {
    at += text[at] === "\\" ? 2 : 1;
  }
  return at + 1;
}

/** Behind the slash that closes a regular expression. */
function regExpEnd(text: string, from: number): number {
  let inClass = false;
  for (let at = from; at < text.length && text[at] !== "\n"; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "[") inClass = true;
    else if (text[at] === "]") inClass = false;
    else if (text[at] === "/" && !inClass) return at + 1;
  }
  return from;
}

/** Behind the end of a template literal, or behind the `${` of its hole. */
function templateEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    if (text[at] === "\\") at += 2;
    else if (text[at] === "`") return at + 1;
    else if (text.startsWith("${", at)) return at + 2;
    else at++;
  }
  return at;
}
