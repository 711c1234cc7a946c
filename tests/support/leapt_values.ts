/** Keys under which the scanner enters an object, by depth. */
const ENTERED = [undefined, "object", "metadata"];

/**
 * Text of a watch event with every object and array emptied that the scanner
 * skips, by the simplest algorithm.
 */
export function withoutLeapt(text: string): string {
  let result = "";
  let key: unknown;
  let level = 0;
  for (let i = 0; i < text.length;) {
    const char = text.charAt(i);
    let end = i + 1;
    if (char === '"') {
      end = endOfString(text, i);
      key = stringValue(text.slice(i, end));
    } else if (char === "{" && level < 3 && key === ENTERED[level]) level++;
    else if (char === "{" || char === "[") {
      end = endOfBrackets(text, i);
      result += char;
      i = end - 1; // only the closing bracket is left to copy
    } else if (char === "}") level--;
    result += text.slice(i, end);
    i = end;
  }
  return result;
}

function stringValue(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (i < text.length && text.charAt(i) !== '"') {
    i += text.charAt(i) === "\\" ? 2 : 1;
  }
  return i + 1;
}

/** Position after the closing bracket. */
function endOfBrackets(text: string, start: number): number {
  let depth = 0;
  for (let i = start; i < text.length;) {
    const char = text.charAt(i);
    i = char === '"' ? endOfString(text, i) : i + 1;
    if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth === 0) return i;
  }
  return text.length;
}
