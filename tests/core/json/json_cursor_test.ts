import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
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

/** Whether the cursor takes a text as one value, with a quote after its end. */
function accepts(text: string): boolean {
  const cursor = new JsonCursor("a test");
  const bytes = Buffer.from(`x${text}"`);
  cursor.reset({ bytes, start: 1, end: bytes.length - 1 });
  try {
    cursor.skipStructure();
    cursor.finish();
    return true;
  } catch (error) {
    assert.ok(error instanceof SyntaxError);
    return false;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test("JsonCursor accepts the same scalars as JSON.parse", () => {
  const text = (...units: string[]) =>
    fc.array(fc.constantFrom(...units), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join(""));
  const number = text("-", "+", "0", "1", "9", ".", "e", "E", "/", ":");
  const part = [
    "a",
    "\u0001",
    "\\",
    "\\u",
    "00",
    "aF",
    "g",
    "\\n",
    "\\x",
    "/",
    '"',
  ];
  const literal = ["true", "false", "null", "tru", "nulll", "True"];
  const space = [" ", "\t", "\n", "\r", "\u0001", "\u000b"];
  fc.assert(
    fc.property(
      fc.oneof(
        number,
        text(...part).map((inner) => `"${inner}"`),
        text(...part).map((inner) => `"${inner}`),
        text(...literal, ...space),
      ),
      (text) => assert.equal(accepts(text), isJson(text), JSON.stringify(text)),
    ),
    { numRuns: 3_000 },
  );
  for (
    const text of ["0", "-0", "00", "0.5", "1e+5", "1E-05", "1e", "-", ".5"]
  ) {
    assert.equal(accepts(text), isJson(text), text);
  }
});

test("JsonCursor names the byte that is wrong, counted from the start", () => {
  const at = (text: string, read: (cursor: JsonCursor) => unknown) => {
    const cursor = new JsonCursor("a test");
    const bytes = Buffer.from(`12345${text}`);
    cursor.reset({ bytes, start: 5, end: bytes.length });
    try {
      read(cursor);
    } catch (error) {
      return (error as Error).message.split(": ").slice(1).join(": ");
    }
    return "no error";
  };
  const value = (cursor: JsonCursor) => cursor.skipStructure();
  const key = (cursor: JsonCursor) => cursor.enterObject();
  assert.equal(
    at('"ab\n"', value),
    "a string must have an end, and no control characters: received 0x0a at byte 3",
  );
  assert.equal(
    at('"ab\\x"', value),
    "a string must not have an invalid escape: received 0x5c at byte 3",
  );
  assert.equal(
    at("1.x", value),
    "a number must have digits: received 0x78 at byte 2",
  );
  assert.equal(
    at('{xa":1}', key),
    "a key must be a string: received 0x78 at byte 1",
  );
  assert.equal(
    at('{"a"x1}', key),
    '":" must follow a key: received 0x78 at byte 4',
  );
  assert.equal(
    at('{"a"', key),
    '":" must follow a key: received the end at byte 4',
  );
  assert.equal(
    at('[ {"a" 1}]', (cursor) => (cursor.enterArray(), cursor.skipValue())),
    "a value is not well-formed: received 0x7b at byte 2",
  );
});

/** Cursor at a text that other bytes follow. */
function cursorBefore(text: string, following: string): JsonCursor {
  const cursor = new JsonCursor("a test");
  const bytes = Buffer.from(`${text}${following}`);
  cursor.reset({ bytes, start: 0, end: text.length });
  return cursor;
}

test("JsonCursor reads nothing beyond the end of its range", () => {
  const number = cursorBefore("12", "34");
  number.skipStructure();
  assert.equal(number.position, 2);
  for (
    const [text, following] of [
      ['"a\\', '""'],
      ['"\\u00', '61"'],
      ['"a', '"'],
      ["[1", "]"],
      ["tr", "ue"],
      ["1.", "5"],
    ] as const
  ) {
    const cursor = cursorBefore(text, following);
    assert.throws(() => cursor.skipStructure(), SyntaxError, text);
    assert.doesNotThrow(() => cursorAt(text + following).skipStructure());
  }
  const expected = Buffer.from('"ab":');
  const object = cursorBefore('{"ab"', ":1}");
  assert.throws(() => object.enterObject(expected), SyntaxError);
});

test("JsonCursor knows an expected key, also after one with escapes", () => {
  const cursor = cursorAt('{"\\u0061":1,"bc":2}');
  const expected = Buffer.from('"bc":');
  assert.equal(cursor.enterObject(expected), true);
  assert.deepEqual([cursor.wasExpected, cursor.escaped], [false, true]);
  assert.equal(cursor.stringText(), "a");
  cursor.skipStructure();
  assert.equal(cursor.nextMember(expected), true);
  assert.deepEqual([cursor.wasExpected, cursor.escaped], [true, false]);
  assert.equal(cursor.stringText(), "bc");
});

test("JsonCursor moves to the first byte of each element", () => {
  const cursor = cursorAt("[ 1 , 22]");
  assert.equal(cursor.enterArray(), true);
  assert.equal(cursor.position, 2);
  cursor.skipStructure();
  assert.equal(cursor.nextElement(), true);
  assert.equal(cursor.position, 6);
  cursor.skipStructure();
  assert.equal(cursor.nextElement(), false);
});
