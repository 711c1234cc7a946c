import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asBuffer,
  type ByteRange,
  equalRanges,
  parseRange,
  sameBytes,
  smallInteger,
  stringAt,
  stringEquals,
} from "../../../core/json/byte_range.ts";

test("sameBytes compares parts of arrays of any length, at any position", () => {
  for (const length of [1, 64, 65, 300]) {
    for (const [size, otherSize] of [[300, 100_000], [100_000, 300]] as const) {
      const bytes = Buffer.alloc(size);
      const others = Buffer.alloc(otherSize);
      const start = size - length;
      const from = otherSize - length;
      assert.ok(sameBytes(bytes, start, size, others, from));
      others[from] = 1;
      assert.ok(!sameBytes(bytes, start, size, others, from));
      bytes[start] = 1;
      assert.ok(sameBytes(bytes, start, size, others, from));
    }
  }
});

/** Bytes of a text between others, with the range of the text. */
function inside(text: string): ByteRange {
  const bytes = new TextEncoder().encode(`1${text}1"`);
  return { bytes, start: 1, end: bytes.length - 2 };
}

test("asBuffer shares a part of an array, at its position", () => {
  const { buffer } = new Uint8Array([0, 1, 2, 3, 4]);
  const part = asBuffer(new Uint8Array(buffer, 2, 2));
  assert.deepEqual([...part], [2, 3]);
  part[0] = 9;
  assert.equal(new Uint8Array(buffer)[2], 9);
});

test("equalRanges compares lengths before bytes", () => {
  assert.equal(equalRanges(inside("ab"), inside("ab")), true);
  for (const [a, b] of [["ab", "abc"], ["abc", "ab"], ["ab", "ac"]] as const) {
    assert.equal(equalRanges(inside(a), inside(b)), false, `${a} ${b}`);
  }
});

test("smallInteger reads up to 15 digits, and nothing else", () => {
  const read = (text: string) => {
    const { bytes, start, end } = inside(text);
    return smallInteger(bytes, start, end);
  };
  assert.equal(read("0"), 0);
  assert.equal(read("9".repeat(15)), 999_999_999_999_999);
  for (const text of ["9".repeat(16), "1.5", "-1", "1e5", "1:"]) {
    assert.equal(read(text), undefined, text);
  }
});

test("stringEquals compares the text of a JSON string, not its bytes", () => {
  const equals = (json: string, text: string) => {
    const { bytes, start, end } = inside(json);
    return stringEquals(bytes, start, end, text);
  };
  for (
    const [json, text] of [
      ['"ab"', "ab"],
      ['"\\u0061b"', "ab"],
      ['"é"', "é"],
      ['"a\\"b"', 'a"b'],
      ['""', ""],
    ] as const
  ) {
    assert.equal(equals(json, text), true, json);
    assert.equal(stringAt(...positions(json)), text);
  }
  for (
    const [json, text] of [
      ['"ab"', "a"],
      ['"a"', "ab"],
      ['"ab"', "ac"],
      ['"é"', "e"],
      ['"\\u0061b"', "ac"],
    ] as const
  ) assert.equal(equals(json, text), false, json);
});

function positions(json: string): [Uint8Array, number, number] {
  const { bytes, start, end } = inside(json);
  return [bytes, start, end];
}

test("parseRange does not quote what it cannot parse", () => {
  assert.deepEqual(parseRange(inside('{"a":1}')), { a: 1 });
  assert.throws(() => parseRange(inside("hunter2")), {
    name: "SyntaxError",
    message: "Cannot parse JSON: it is not well-formed: received 7 characters",
  });
});
