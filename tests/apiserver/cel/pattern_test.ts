import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPatterns, pattern } from "../../../dev/apiserver/cel/pattern.ts";

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

for (const [source, matching, other] of FLAGS) {
  test(`A pattern reads ${source} as RE2 does`, async () => {
    await loadPatterns();
    const { test, problem } = pattern(source);
    assert.equal(problem, undefined);
    assert.equal(test(matching), true, matching);
    assert.equal(test(other), false, other);
  });
}

test("A pattern that RE2 refuses has Go's message", async () => {
  await loadPatterns();
  assert.deepEqual(
    ["(?i", "x(?x)", "*", "(?=a)", "\\1", "a{1001}", "[b-a]"]
      .map((source) => pattern(source).problem),
    [
      "error parsing regexp: invalid or unsupported Perl syntax: `(?i`",
      "error parsing regexp: invalid or unsupported Perl syntax: `(?x`",
      "error parsing regexp: missing argument to repetition operator: `*`",
      "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
      "error parsing regexp: invalid escape sequence: `\\1`",
      "error parsing regexp: invalid repeat count: `{1001}`",
      "error parsing regexp: invalid character class range: `b-a`",
    ],
  );
});

test("A pattern matches in a time linear in the length of the text", async () => {
  await loadPatterns();
  const { test } = pattern("^([a-z0-9]+-?)+$");
  const started = performance.now();
  // 8.8 s for 29 characters with backtracking, and twice that for each more.
  assert.equal(test(`${"a".repeat(20_000)}!`), false);
  assert.ok(performance.now() - started < 5_000);
});
