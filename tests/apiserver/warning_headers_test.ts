import assert from "node:assert/strict";
import { test } from "node:test";
import { warningHeaders } from "../../dev/apiserver/warning_headers.ts";

test("warnings are sent once each, without control characters", () => {
  assert.deepEqual(warningHeaders(["a\n", "", 'say "b"', "a\n"]), [
    '299 - "a "',
    '299 - "say \\"b\\""',
  ]);
});

test("warnings of more than 4096 characters are cut to 256 each", () => {
  const short = ["s".repeat(2_000), "t".repeat(2_000)];
  assert.equal(warningHeaders(short).join("").length, 2 * 2_008);
  const long = Array.from(
    { length: 30 },
    (_, at) => `${at} ${"ü".repeat(999)}`,
  );
  const headers = warningHeaders(long);
  assert.equal(headers.length, 16);
  for (const header of headers) assert.equal(header.length, 256 + 8);
});
