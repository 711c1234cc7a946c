/**
 * Maximum length of all warnings of a response, in characters; if it is
 * exceeded, each is shortened.
 */
const MAX_TOTAL = 4_096;
/** Maximum length of each warning if their total is too long, in characters. */
const MAX_ITEM = 256;

/**
 * Values of the `Warning` headers of a response (RFC 7234). As in
 * kube-apiserver, each text is sent once, and long texts are cut so that
 * clients accept the headers.
 */
export function warningHeaders(warnings: readonly string[]): readonly string[] {
  const texts = [...new Set(warnings)].filter((text) => text !== "");
  const total = texts.reduce((sum, text) => sum + lengthOf(text), 0);
  if (total <= MAX_TOTAL) return texts.map(warningHeader);
  const cut: string[] = [];
  let written = 0;
  for (const text of texts) {
    if (written >= MAX_TOTAL) break;
    const item = [...text].slice(0, MAX_ITEM).join("");
    written += lengthOf(item);
    cut.push(warningHeader(item));
  }
  return cut;
}

/** Number of Unicode characters in a text. */
function lengthOf(text: string): number {
  return [...text].length;
}

function warningHeader(text: string): string {
  // deno-lint-ignore no-control-regex -- a header must hold none of them
  const safe = text.replaceAll(/[\u0000-\u001f\u007f]/g, " ")
    .replaceAll(/["\\]/g, "\\$&");
  return `299 - "${safe}"`;
}
