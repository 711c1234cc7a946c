import assert from "node:assert/strict";
import { test } from "node:test";
import {
  messageWithCause,
  shortText,
  textWithCause,
} from "../../core/error_text.ts";

test("The text of a thrown object is its message, or its type", () => {
  for (
    const [thrown, text] of [
      [{ code: 5, message: "It is full" }, "It is full"],
      [{ password: "secret" }, "an object"],
      [Object.create(null), "an object"],
      [null, "null"],
      [undefined, "undefined"],
      ["text", "text"],
      [Symbol("mark"), "Symbol(mark)"],
    ] as const
  ) {
    assert.equal(messageWithCause(thrown), text);
    assert.equal(textWithCause(thrown), text);
  }
  assert.equal(textWithCause(new TypeError("wrong")), "TypeError: wrong");
  assert.equal(messageWithCause(new TypeError("wrong")), "wrong");
});

test("shortText cuts between characters, at the limit and not before it", () => {
  const astronaut = "👩‍🚀"; // Five code units, one character.
  for (
    const [text, limit, expected] of [
      ["abc", 3, "abc"],
      ["abcd", 3, "abc"],
      ["", 0, ""],
      ["ab", 0, ""],
      [`ab${astronaut}`, 7, `ab${astronaut}`],
      [`ab${astronaut}`, 6, "ab"],
      [`ab${astronaut}c`, 7, `ab${astronaut}`],
      ["cafe\u0301s", 4, "caf"],
      ["cafe\u0301s", 5, "cafe\u0301"],
      ["🚀🚀", 3, "🚀"],
      ["🚀", 1, ""],
      [`${"a".repeat(500)}${astronaut}`, 503, "a".repeat(500)],
    ] as const
  ) assert.equal(shortText(text, limit), expected, `${text} ${limit}`);
});
