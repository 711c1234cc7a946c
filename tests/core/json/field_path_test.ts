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
