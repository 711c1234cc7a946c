import assert from "node:assert/strict";
import { test } from "node:test";
import { charts } from "../../bench/support/charts.ts";
import { keptReports } from "../../bench/support/kept_reports.ts";
import { withNumbers } from "../../bench/support/numbers_table.ts";
import { projectText } from "./shipped_files.ts";

const REPORTS = keptReports();

test("The guide has the numbers of the kept run only", () => {
  const guide = projectText("docs/performance.md");
  assert.equal(withNumbers(guide, REPORTS), guide);
});

test("Charts show the kept run", () => {
  for (const [name, picture] of Object.entries(charts(REPORTS[0]))) {
    assert.equal(projectText(`bench/charts/${name}`), picture, name);
  }
});
