import assert from "node:assert/strict";
import { test } from "node:test";
import { parseByteSize } from "../../../core/api/byte_size.ts";

test("parseByteSize parses sizes in Kubernetes notation", () => {
  const sizes: [number | string, number][] = [
    [1, 1],
    ["1 GiB", 1024 ** 3],
    ["65536", 65536],
    ["96MiB", 96 * 1024 ** 2],
    ["1Gi", 1024 ** 3],
    ["500M", 5e8],
    ["500k", 5e5],
    ["1.5KB", 1500],
    ["2Ti", 2 * 1024 ** 4],
  ];
  for (const [text, bytes] of sizes) assert.equal(parseByteSize(text), bytes);
  for (const text of ["", "MiB", "-1", "1e3", "12X"]) {
    assert.throws(() => parseByteSize(text), SyntaxError, text);
  }
  for (const size of [0, -5, NaN, Infinity, "0", "999999999Ti"]) {
    assert.throws(() => parseByteSize(size), Error, String(size));
  }
});
