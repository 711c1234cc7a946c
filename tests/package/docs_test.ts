import assert from "node:assert/strict";
import { test } from "node:test";
import { Script } from "node:vm";
import { projectText, shippedSources } from "./shipped_files.ts";

const DEFAULT_REGEXP = /@default\b[^\n]*(?:\n\s*\*\s[^\n@]*)*/g;
/** Expressions that a reader takes for code: a bare word is prose. */
const CODE_REGEXP =
  /^(?:[-\d"'`[{]|(?:true|false|undefined|null|Infinity)$|new |\w+[.(]|[a-z]+[A-Z]\w*$|[A-Z][A-Z_]+$)/;

/** Whether a default is an expression. */
function isCode(text: string): boolean {
  try {
    new Script(`(${text})`);
    return CODE_REGEXP.test(text);
  } catch {
    return false;
  }
}

test("@default tags of shipped files hold code", () => {
  const faults: string[] = [];
  let count = 0;
  for (const file of shippedSources()) {
    for (const [tag] of projectText(file).matchAll(DEFAULT_REGEXP)) {
      count++;
      const text = tag.replaceAll(/\n\s*\*\s?/g, " ").trim();
      const code = /^@default \{(.*)\}$/.exec(text)?.[1];
      if (code === undefined || !isCode(code)) faults.push(`${file}: ${text}`);
    }
  }
  assert(count > 100, `only ${count} tags were found`);
  assert.deepEqual(faults, []);
});
