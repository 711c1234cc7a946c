import assert from "node:assert/strict";
import { test } from "node:test";
import { leaderId } from "../../../workflows/conditions/leader_id.ts";

test("A leader's id ends in digits that stand for its part [F46]", async () => {
  assert.equal(await leaderId("foo", ["bar"]), "foo-fcde2b2e");
  assert.equal(await leaderId("foo", ["b", "ar"]), "foo-fcde2b2e");
  assert.notEqual(await leaderId("foo", ["ar", "b"]), "foo-fcde2b2e");
});

test("A leader's id without a part, or without a base, is left as it is [F46]", async () => {
  assert.equal(await leaderId("foo", []), "foo");
  assert.equal(await leaderId("", ["bar"]), "");
});
