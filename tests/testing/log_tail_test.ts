import assert from "node:assert/strict";
import { test } from "node:test";
import { LogTail } from "../../dev/testing/log_tail.ts";

test("LogTail keeps the last 200 lines of all levels and counts the others", () => {
  const tail = new LogTail(() => 0);
  assert.equal(tail.toString(), "(nothing was logged)");
  tail.logger.debug("first");
  assert.match(tail.toString(), /^\{.*"first".*\}$/);
  for (let line = 1; line <= 200; line++) tail.logger.info(`line ${line}`);
  const [head = "", ...lines] = tail.toString().split("\n");
  assert.equal(head, "(1 earlier lines)");
  assert.equal(lines.length, 200);
  assert.match(lines[0] ?? "", /"line 1"/);
  assert.match(lines[199] ?? "", /"line 200"/);
});
