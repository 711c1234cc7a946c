import assert from "node:assert/strict";
import { test } from "node:test";
import { projectText, shippedSources } from "./shipped_files.ts";

const SOURCES = shippedSources();

function everySource(check: (text: string, file: string) => void): void {
  assert(SOURCES.length > 50, `only ${SOURCES.length} files`);
  for (const file of SOURCES) check(projectText(file), file);
}

/** Code of a file without its comments. */
function codeOf(text: string): string {
  return text.replaceAll(/^\s*(?:\/\/|\/\*\*?|\*).*$/gm, "");
}

test("Shipped files are named in snake_case, and none is called utils", () => {
  for (const file of SOURCES) {
    assert.match(file, /^(?:[a-z0-9_]+\/)*[a-z0-9_]+\.ts$/);
    assert.doesNotMatch(file, /(?:^|\/|_)(?:utils?|helpers?|misc)(?:\/|_|\.)/);
  }
});

test("Shipped files have no to-do marks and suppress no compiler errors", () => {
  everySource((text, file) => {
    assert.doesNotMatch(text, /\b(?:TODO|FIXME|XXX|HACK)\b/, file);
    assert.doesNotMatch(text, /@ts-(?:ignore|expect-error|nocheck)/, file);
  });
});

test("Doc tags of shipped files begin their line, where tools find them", () => {
  everySource((text, file) => {
    const inside =
      /^\s*\/?\*{1,2} [^@\n]*[^`@\n] @(?:default|throws|returns|param) .*$/m
        .exec(
          text,
        );
    assert.equal(inside?.[0], undefined, file);
  });
});

test("Shipped files declare no globals and have no default export", () => {
  everySource((text, file) => {
    const code = codeOf(text);
    assert.doesNotMatch(code, /\bdeclare\s+(?:global|module|var)\b/, file);
    assert.doesNotMatch(code, /^export default\b/m, file);
    assert.doesNotMatch(text, /^\/\/\/ <reference/m, file);
    assert.doesNotMatch(code, /^\s*(?:await )?using\s+\w+\s*=/m, file);
  });
});

test("Shipped files contain no path and no address of a developer's machine", () => {
  everySource((text, file) => {
    assert.doesNotMatch(text, /["'`(\s]\/(?:work|home|root)\//, file);
    assert.doesNotMatch(text, /registry\.npmjs|npm\.pkg|\/tmp\//, file);
  });
});
