import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { test } from "node:test";
import { sameBytes } from "../../../core/json/byte_range.ts";

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
