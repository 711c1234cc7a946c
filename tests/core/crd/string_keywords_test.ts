import assert from "node:assert/strict";
import { test } from "node:test";
import { stringKeywords } from "../../../core/crd/string_keywords.ts";

const CONTEXT = { path: "spec.at", root: {}, references: [] };

test("stringKeywords keeps formats of the server, and patterns it does not cover", () => {
  const cases: readonly (readonly [Record<string, unknown>, object])[] = [
    [{ minLength: 0, maxLength: 9 }, { minLength: 0, maxLength: 9 }],
    [{ format: "uuid", pattern: "^a" }, { format: "uuid", pattern: "^a" }],
    [{ format: "ulid", pattern: "^a" }, { pattern: "^a" }],
    [{ format: 3, pattern: "^a" }, { pattern: "^a" }],
    [{ format: ["uuid"] }, {}],
    [{ format: "date", pattern: "^\\d" }, { format: "date" }],
    [{ format: "ipv4", pattern: "^\\d" }, { format: "ipv4" }],
    [{ format: "date-time" }, { format: "date-time" }],
    // Strict: the pattern adds nothing to the format.
    [{ format: "date-time", pattern: "Z$|\\+" }, { pattern: "Z$|\\+" }],
    [
      { format: "date-time", pattern: "^\\d+-\\d+-\\d+T\\d+:\\d+:\\d+Z$" },
      { format: "date-time" },
    ],
    // Any one value that the server refuses keeps the pattern instead.
    [{ format: "date-time", pattern: "^.{16}$" }, { pattern: "^.{16}$" }],
    [{ format: "date-time", pattern: "^.{17}$" }, { pattern: "^.{17}$" }],
    [{ format: "date-time", pattern: ":56$" }, { pattern: ":56$" }],
    [{ format: "date-time", pattern: "(?i::56z$)" }, { format: "date-time" }],
    [{ format: "date-time", pattern: "(?i:t.{8}$)" }, {
      pattern: "(?i:t.{8}$)",
    }],
    [{ format: "duration", pattern: "^PT" }, { pattern: "^PT" }],
    [
      { format: "duration", pattern: "^\\d+s$" },
      { format: "duration", pattern: "^\\d+s$" },
    ],
  ];
  for (const [node, expected] of cases) {
    assert.deepEqual(
      stringKeywords({ type: "string", ...node }, CONTEXT),
      expected,
      JSON.stringify(node),
    );
  }
});

test("stringKeywords refuses patterns that Go does not compile", () => {
  for (
    const pattern of ["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(a)\\1", "\\k<a>"]
  ) {
    assert.throws(
      () => stringKeywords({ pattern }, CONTEXT),
      /^TypeError: Cannot write a structural schema for spec\.at: .*look-around/,
      pattern,
    );
  }
  for (const pattern of ["(?:a)", "(?<a>b)", "\\\\1", "a\\.1"]) {
    assert.equal(stringKeywords({ pattern }, CONTEXT).pattern, pattern);
  }
});

test("stringKeywords writes codes of characters as Go reads them", () => {
  const cases = [
    ["^[\\u00c0-\\u017f]$", "^[\\x{00c0}-\\x{017f}]$"],
    ["\\u{1F600}|\\ud83d\\ude00", "\\x{1F600}|\\x{1f600}"],
    // A backslash itself, and other escapes, stay.
    ["\\\\u00c0\\d\\x41", "\\\\u00c0\\d\\x41"],
  ] as const;
  for (const [pattern, expected] of cases) {
    const node = { type: "string", pattern };
    assert.deepEqual(stringKeywords(node, CONTEXT), { pattern: expected });
  }
});
