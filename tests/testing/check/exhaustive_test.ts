import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import {
  choicesText,
  readChoices,
  ScheduleGraph,
} from "../../../dev/testing/check/explorer.ts";

const keeper = new URL("fixtures/keeper.ts", import.meta.url);
const gadget = (kind: string, size: number, name = "sample") => ({
  apiVersion: "test.coracle.dev/v1",
  kind,
  metadata: { namespace: "default", name },
  spec: { size },
});
const workload = (kind: string) => [
  { apply: gadget(kind, 1) },
  { apply: gadget(kind, 2) },
];

test("Choices are read from their text without first choices at the end", () => {
  assert.equal(choicesText([0, 1, 0, 2, 0]), "abac");
  assert.deepEqual(readChoices("abac"), [0, 1, 0, 2]);
  assert.equal(choicesText([0, 0]), "a");
});

test("Schedules are the ways through a graph in which states meet again", () => {
  const graph = new ScheduleGraph();
  graph.add("start", 2);
  graph.add("left", 1);
  graph.add("right", 2);
  graph.add("meeting", 3);
  graph.link(["start", 0], "left");
  graph.link(["start", 1], "right");
  graph.link(["left", 0], "meeting");
  graph.link(["right", 0], "meeting");
  graph.link(["right", 1], "");
  for (const choice of [0, 1, 2]) graph.link(["meeting", choice], "");
  assert.equal(graph.count(), 3 + 3 + 1);
});

test("All schedules of a correct operator converge", async () => {
  const { findings, coverage } = await checkOperator({
    operator: new URL("fixtures/copier.ts", import.meta.url),
    workload: [
      { apply: gadget("Copier", 1), settle: false },
      { apply: gadget("Copier", 1, "other") },
    ],
    exhaustive: true,
  });
  assert.deepEqual(findings, []);
  const { complete, schedules, runs, states } = coverage.exhaustive!;
  assert.ok(complete);
  assert.ok(
    schedules > runs && runs > states,
    `${schedules} ${runs} ${states}`,
  );
  assert.ok(states > 10);
});

test("A schedule that loses data is found and replayed", async () => {
  const { findings, coverage } = await checkOperator({
    operator: keeper,
    workload: workload("Keeper"),
    exhaustive: true,
  });
  assert.ok(coverage.exhaustive?.complete);
  const [found] = findings;
  assert.match(found?.title ?? "", /has another data\.kept after/);
  assert.equal(found?.writes[0], "delete ConfigMap default/sample");
  assert.match(found.plan, /^workload\/schedule:choices=[a-z]+$/);
  const again = await checkOperator({
    operator: keeper,
    workload: workload("Keeper"),
    replay: found.plan,
  });
  assert.deepEqual(
    again.findings.map(({ title }) => title),
    [found.title],
  );
});

test("An exhaustive check names its limits if each scenario exceeds them", async () => {
  await assert.rejects(
    checkOperator({
      operator: keeper,
      workload: Array.from({ length: 9 }, (_, at) => ({
        apply: gadget("Keeper", at % 2 + 1),
      })),
      exhaustive: true,
    }),
    {
      message:
        "Cannot run all schedules: each scenario has more than 8 writes or 2 objects: give a smaller workload",
    },
  );
});
