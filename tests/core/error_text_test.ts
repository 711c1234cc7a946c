import assert from "node:assert/strict";
import { test } from "node:test";
import { messageWithCause, textWithCause } from "../../core/error_text.ts";

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
