import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { JsonCursor } from "../../../core/json/json_cursor.ts";

function cursorAt(text: string): JsonCursor {
  const cursor = new JsonCursor("a test");
  cursor.reset(wholeRange(text));
  return cursor;
}

/** Value nested in alternating lists and objects. */
function nested(depth: number, value: string): string {
  return '[{"a":'.repeat(depth / 2) + value + "}]".repeat(depth / 2);
}

test("JsonCursor skips deeply nested values and finds errors in them", () => {
  for (const depth of [100, 198, 200, 202, 1_000, 10_000]) {
    const text = nested(depth, '"x]}"');
    const cursor = cursorAt(`${text} ,`);
    cursor.skipValue();
    assert.equal(cursor.position, text.length, `${depth}`);
    for (const wrong of ["1 2", "", "x", "[1,]", '{"a"}']) {
      assert.throws(
        () => cursorAt(nested(depth, wrong)).skipValue(),
        SyntaxError,
        `${wrong} within ${depth}`,
      );
    }
  }
});

test("JsonCursor reports the position of an error without quoting the text", () => {
  for (
    const [text, method, expected] of [
      ["[1 2]", "skipValue", /a value is not well-formed/],
      ["[1}", "skipStructure", /brackets must match/],
      ['{"secret":[1]', "skipStructure", /a value must have an end/],
    ] as const
  ) {
    assert.throws(() => cursorAt(text)[method](), (error: unknown) => {
      assert.ok(error instanceof SyntaxError);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
});
