import assert from "node:assert/strict";
import { test } from "node:test";
import { staleFiles } from "../../tools/kubernetes/generate.ts";

test("generate gives the files that are checked in", () => {
  assert.deepEqual(staleFiles(), []);
});
