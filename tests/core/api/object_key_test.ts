import assert from "node:assert/strict";
import { test } from "node:test";
import { keyText, parseKey } from "@coracle/operator/client";

test("parseKey reads what keyText writes", () => {
  for (const key of [{ name: "a" }, { namespace: "b", name: "a" }]) {
    assert.deepEqual(parseKey(keyText(key)), key);
  }
});

test("parseKey refuses what is neither a name nor a namespace with a name", () => {
  for (const text of ["", "/", "/a", "a/", "a/b/c", "a//b"]) {
    assert.throws(
      () => parseKey(text),
      /^SyntaxError: Cannot read an object key/,
    );
  }
});

test("parseKey names what is not text", () => {
  assert.throws(() => parseKey(undefined as unknown as string), {
    name: "TypeError",
    message: "Cannot read an object key: it must be text: received nothing",
  });
});
