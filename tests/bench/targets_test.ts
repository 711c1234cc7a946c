import assert from "node:assert/strict";
import { test } from "node:test";
import { loadBench } from "../../bench/support/bench.ts";
import { HEADLINES } from "../../bench/support/headlines.ts";
import { comparison } from "../../bench/support/report.ts";
import { TARGETS, verdicts } from "../../bench/support/targets.ts";

function result(subject: string, value: number) {
  const [bench, unit] = ["scan", "µs/event"];
  return { bench, subject, unit, value, min: value, max: value };
}

test("Verdicts compare a measure with the rival's of the same run", () => {
  const [met] = verdicts([result("coracle", 2), result("JSON.parse", 20)]);
  assert.equal(met?.text, "≤ 1/8 of JSON.parse");
  assert.equal(met?.met, true);
  assert.equal(met?.margin, 1.25);
  const [missed] = verdicts([result("coracle", 4), result("JSON.parse", 20)]);
  assert.equal(missed?.met, false);
});

test("Measures that are 0 before and after a change are equal", async () => {
  const bench = await loadBench("queue");
  const measures = [{ unit: "retries", value: 0 }];
  const pair = { subject: "coracle", before: measures, after: measures };
  assert.match(comparison(bench, [pair]), /0 retries {2}× 1 \(1 to 1\)/);
});

test("Verdicts are empty where one of the two was not measured", () => {
  assert.deepEqual(verdicts([result("coracle", 2)]), []);
});

test("Verdicts support upper and lower limits", () => {
  const value = (bench: string, unit: string, value: number) =>
    verdicts([{ ...result("coracle", value), bench, unit }]).map((verdict) => [
      verdict.text,
      verdict.met,
    ]);
  assert.deepEqual(value("queue", "M operations/s", 6), [["≥ 5", true]]);
  assert.deepEqual(value("queue", "M operations/s", 4), [["≥ 5", false]]);
  assert.deepEqual(value("dispatch", "µs CPU/run", 6), [["≤ 6", true]]);
  assert.deepEqual(value("dispatch", "µs CPU/run", 7), [["≤ 6", false]]);
});

test("Verdicts support multiples that are no fractions", () => {
  const results = ["µs CPU/reconcile", "statuses/s in a storm"].flatMap((
    unit,
  ) =>
    [["coracle", 90], ["controller-runtime", 100]].map(([subject, value]) => ({
      ...result(String(subject), Number(value)),
      bench: "reconcile",
      unit,
    }))
  );
  assert.deepEqual(verdicts(results).map(({ text, met }) => [text, met]), [
    ["≤ 0.75 × controller-runtime", false],
    ["≥ 1.2 × controller-runtime", false],
  ]);
});

test("Each measure has at most one target", () => {
  const names = TARGETS.map((target) => JSON.stringify(target));
  assert.equal(new Set(names).size, names.length);
});

test("Targets and headlines name existing subjects", async () => {
  const wanted = [
    ...TARGETS.map(({ bench, subject, limit }) => ({
      bench,
      subjects: [subject, ..."of" in limit ? [limit.of] : []],
    })),
    ...HEADLINES.map(({ bench, subject, rivals }) => ({
      bench,
      subjects: [subject, ...Object.keys(rivals)],
    })),
  ];
  for (const { bench, subjects } of wanted) {
    const there = (await loadBench(bench)).subjects.map(({ name }) => name);
    for (const subject of subjects) {
      assert.ok(there.includes(subject), `${bench}: ${subject}`);
    }
  }
});
