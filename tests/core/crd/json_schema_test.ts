import assert from "node:assert/strict";
import { test } from "node:test";
import { followReference } from "../../../core/crd/json_schema.ts";

test("followReference decodes each part of a pointer once, in its order", () => {
  const [slash, tilde, both, space] = [
    { title: "slash" },
    { title: "tilde" },
    { title: "both" },
    { title: "space" },
  ];
  const root = {
    $defs: { "a/b": slash, "a~b": tilde, "a~1b": both, "a b": space },
  };
  assert.equal(followReference(root, "#/$defs/a~1b"), slash);
  assert.equal(followReference(root, "#/$defs/a~0b"), tilde);
  assert.equal(followReference(root, "#/$defs/a~01b"), both);
  assert.equal(followReference(root, "#/$defs/a%20b"), space);
  assert.equal(followReference(root, "#"), root);
  for (
    const nowhere of [
      "#/$defs/c",
      "#/$defs/a~1b/title",
      "#/$defs/constructor",
      "#/$defs/__proto__",
      "other.json#/$defs/a~1b",
    ]
  ) assert.equal(followReference(root, nowhere), undefined, nowhere);
});
