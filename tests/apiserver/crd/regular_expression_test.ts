import assert from "node:assert/strict";
import { test } from "node:test";
import { goRegExp } from "../../../dev/apiserver/crd/schema/regular_expression.ts";

const FLAGS: readonly (readonly [
  pattern: string,
  matching: string,
  other: string,
])[] = [
  ["^x(?i)y$", "xY", "XY"],
  ["^(?i:x)y$", "Xy", "XY"],
  ["^a(?i)b|c$", "C", "AB"],
  ["^(a(?i)b)c$", "aBc", "aBC"],
  ["^(?i)x(?-i)y$", "Xy", "XY"],
  ["^a(?s).b$", "a\nb", "a\n\nb"],
  ["^[(?i)]x$", "?x", "?X"],
  ["^\\(?i$", "(i", "(I"],
  ["^[[:alpha:](](?i)x$", "(X", "[x"],
  ["^\\Q(?i)\\Ex$", "(?i)x", "(?i)X"],
];

for (const [pattern, matching, other] of FLAGS) {
  test(`goRegExp reads ${pattern} as RE2 does`, () => {
    const compiled = goRegExp(pattern);
    assert.equal(compiled?.test(matching), true, matching);
    assert.equal(compiled?.test(other), false, other);
  });
}

test("goRegExp refuses flags that RE2 refuses", () => {
  for (const pattern of ["(?i", "x(?x)", "x(?i)*"]) {
    assert.equal(goRegExp(pattern), undefined, pattern);
  }
});
