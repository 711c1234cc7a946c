import assert from "node:assert/strict";
import { test } from "node:test";
import { charts } from "../../bench/support/charts.ts";
import { keptReports } from "../../bench/support/kept_reports.ts";
import { withNumbers } from "../../bench/support/readme_table.ts";
import { projectText } from "./shipped_files.ts";

const REPORTS = keptReports();

test("README has the numbers of the kept run only", () => {
  const readme = projectText("README.md");
  assert.equal(withNumbers(readme, REPORTS), readme);
});

test("Charts show the kept run", () => {
  for (const [name, picture] of Object.entries(charts(REPORTS[0]))) {
    assert.equal(projectText(`bench/charts/${name}`), picture, name);
  }
});
