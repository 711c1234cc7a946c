import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFieldPath } from "../../../core/json/field_path.ts";

test("parseFieldPath parses names, quoted names, elements and wildcards", () => {
  assert.deepEqual(parseFieldPath('a-1.b["c.d\\"]"][12].e[*]'), [
    { key: "a-1" },
    { key: "b" },
    { key: 'c.d"]' },
    { index: 12 },
    { key: "e" },
    { each: true },
  ]);
});

test("parseFieldPath parses values that select elements", () => {
  assert.deepEqual(parseFieldPath('a[type!="x","y"]'), [
    { key: "a" },
    { field: "type", except: ["x", "y"] },
  ]);
  assert.deepEqual(parseFieldPath("[0].a"), [{ index: 0 }, { key: "a" }]);
});

test("parseFieldPath refuses what is no path", () => {
  for (
    const path of [
      "",
      ".a",
      "a..b",
      "a.",
      "[0]b",
      "a[",
      "a b",
      '["\\x"]',
      "a[-1]",
    ]
  ) {
    assert.throws(() => parseFieldPath(path), {
      name: "SyntaxError",
      message: /^Cannot read a field path: it must look like /,
    }, path);
  }
});
