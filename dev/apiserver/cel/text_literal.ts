/** Values of single-letter escapes. */
const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** Value of a text literal with its quotes, or the reason why it has none. */
export function textValue(
  literal: string,
): { readonly value?: string; readonly problem?: string } {
  const { content, raw } = contentOf(literal);
  if (raw) return { value: content };
  let problem: string | undefined;
  const value = unescaped(content, (code, unicode) => {
    if (code > 0x10ffff || (unicode && code >= 0xd800 && code < 0xe000)) {
      problem = "invalid unicode code point";
      return "";
    }
    return String.fromCodePoint(code);
  });
  return problem === undefined ? { value } : { problem };
}

/** Value of a literal of bytes with its quotes, or the reason why it has none. */
export function bytesValue(
  literal: string,
): { readonly value?: Uint8Array; readonly problem?: string } {
  const { content, raw } = contentOf(literal.slice(1));
  const encoder = new TextEncoder();
  if (raw) return { value: encoder.encode(content) };
  const parts: Uint8Array[] = [];
  let problem: string | undefined;
  let last = 0;
  for (const { index, 0: escape } of content.matchAll(ESCAPE)) {
    parts.push(encoder.encode(content.slice(last, index)));
    last = index + escape.length;
    if (/^\\[uU]/.test(escape)) problem = "unable to unescape string";
    const code = numericEscape(escape);
    parts.push(
      code === undefined
        ? encoder.encode(ESCAPES[escape.slice(1)] ?? escape.slice(1))
        : Uint8Array.of(code),
    );
  }
  parts.push(encoder.encode(content.slice(last)));
  if (problem !== undefined) return { problem };
  const value = new Uint8Array(
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  let offset = 0;
  for (const part of parts) {
    value.set(part, offset);
    offset += part.length;
  }
  return { value };
}

function contentOf(
  literal: string,
): { readonly content: string; readonly raw: boolean } {
  const raw = /^[rR]/.test(literal);
  const text = (raw ? literal.slice(1) : literal).replace(/\r\n?/g, "\n");
  const quotes = /^(?:"""|''')/.test(text) && text.length >= 6 ? 3 : 1;
  return { content: text.slice(quotes, -quotes), raw };
}

const ESCAPE =
  /\\(?:[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^])/g;

function unescaped(
  content: string,
  ofCode: (code: number, unicode: boolean) => string,
): string {
  return content.replaceAll(ESCAPE, (escape) => {
    const code = numericEscape(escape);
    return code === undefined
      ? ESCAPES[escape.slice(1)] ?? escape.slice(1)
      : ofCode(code, /^\\[uU]/.test(escape));
  });
}

function numericEscape(escape: string): number | undefined {
  if (/^\\[xXuU]/.test(escape)) return Number.parseInt(escape.slice(2), 16);
  return /^\\\d/.test(escape) ? Number.parseInt(escape.slice(1), 8) : undefined;
}
