import assert from "node:assert/strict";
import { test } from "node:test";
import { planMarkdown } from "../../dev/cli/plan_text.ts";
import type { PlanReport } from "../../dev/testing/plan/plan_report.ts";

/** Longest comment of a pull request of GitHub, in characters. */
const LONGEST_COMMENT = 65_536;

const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const long = "x".repeat(500);
const report: PlanReport = {
  cluster: {
    at: 0,
    server: "v1.36.3",
    hidesSecrets: false,
    resources: [],
    unread: [],
    objects: 100_000,
  },
  simulated: { duration: 60_000, quiet: true },
  changes: many(2_000, (index) => ({
    action: "change" as const,
    apiVersion: "v1",
    kind: `Kind${index % 10}`,
    namespace: "default",
    name: `object-${index}`,
    cause: `apply by manager-${index}`,
    fields: many(
      30,
      (at) => ({ path: `.data.field${at}`, before: long, after: long }),
    ),
  })),
  loops: [],
  fights: [],
  failures: many(1_000, (index) => ({
    error: `${index} ${long}`,
    count: 1,
    objects: ["default/a"],
  })),
  fetches: many(1_000, (index) => ({
    request: `GET https://example.com/${index}/${long}`,
    count: 1,
    sent: false,
  })),
  events: many(1_000, (index) => ({
    type: "Warning",
    reason: "Failed",
    message: `${index} ${long}`,
    object: "Site default/a",
    count: 1,
  })),
  missingRights: [],
  answers: [],
  unread: many(1_000, (index) => ({ resource: `kind${index}`, why: long })),
  notes: [long],
};

test("plan as Markdown: a large one fits into a comment of a pull request", () => {
  for (const show of [[], ["all"]]) {
    const text = planMarkdown(report, { show, operator: "operator.ts" });
    assert.ok(text.length <= LONGEST_COMMENT, `${text.length} characters`);
    const shown = text.match(/<details>/g)?.length ?? 0;
    assert.ok(shown >= 2, `${shown} objects`);
    assert.ok(
      text.endsWith(
        `… and ${(2_000 - shown).toLocaleString("en")} more objects.\n`,
      ),
    );
    assert.match(text, /\n… and 980 more\n/);
    // Each block is whole.
    assert.equal(text.match(/<\/details>/g)?.length ?? 0, shown);
  }
});
