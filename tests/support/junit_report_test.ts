import assert from "node:assert/strict";
import { test } from "node:test";
import { readJunitReport } from "./junit_report.ts";

test("readJunitReport counts tests and keeps the messages of failures", () => {
  const report = readJunitReport(`<testsuites>
    <testcase name="a &lt;b> &amp;quot;c&amp;quot;" time="1"/>
    <testcase name="fails" file="/x/y_test.ts"><failure message="short">1 &#33;== 2</failure></testcase>
    <testcase name="fails early" classname="./z_test.ts"><error message="why"/></testcase>
    <testcase name="later"><skipped type="skipped" message="no kubectl"/></testcase>
    <testcase name="unsaid"><skipped/></testcase>
    <testcase name="fine"></testcase>
  </testsuites>`);
  assert.deepEqual(report, {
    passed: 2,
    failed: [
      { name: "fails", file: "/x/y_test.ts", message: "1 !== 2" },
      { name: "fails early", file: "./z_test.ts", message: "why" },
    ],
    skipped: ["later (no kubectl)", "unsaid"],
  });
});

test("readJunitReport of an empty report counts nothing", () => {
  assert.deepEqual(readJunitReport(""), {
    passed: 0,
    failed: [],
    skipped: [],
  });
});
