import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  RunRecord,
  TraceEntry,
} from "../../../dev/testing/check/run_record.ts";
import {
  sequenceDiagram,
  sequenceText,
} from "../../../dev/testing/check/sequence.ts";
import { event, note, run, write } from "./check_case.ts";

test("A sequence has one line for the same requests in a row, such as polls", () => {
  const said = (at: number, what: "step" | "external", text: string) =>
    ({ type: "note", at, what, text }) as TraceEntry;
  const polls = Array.from(
    { length: 50 },
    (_, index) =>
      said(1_000 + index * 1_000, "external", "GET http://db.test/"),
  );
  const trace = [
    said(0, "step", "apply Database default/a"),
    ...polls,
    said(60_000, "external", "POST http://db.test/"),
  ];
  assert.deepEqual(
    sequenceText({ trace } as unknown as RunRecord).split("\n"),
    [
      "     0.000 s  user      apply Database default/a",
      "     1.000 s  external  GET http://db.test/, again until 50.000 s",
      "    60.000 s  external  POST http://db.test/",
    ],
  );
});

/** Entries of a sequence as text, without their times. */
function lines(trace: readonly TraceEntry[]): readonly string[] {
  return sequenceText(run(trace, [])).split("\n").map((line) => line.slice(14));
}

const steps = (count: number) =>
  Array.from({ length: count }, (_, at) => note("step", `step ${at + 1}`));
const kill = note("kill", "the operator is killed");

test("A sequence has 8 entries before the first disturbance and 24 from it on", () => {
  const middle = lines([...steps(20), kill, ...steps(40), kill]);
  assert.equal(middle.length, 8 + 24);
  assert.equal(middle[0], "user      step 13");
  assert.equal(middle[8], ">>>       the operator is killed");
  assert.equal(middle.at(-1), "user      step 23");
  const early = lines([...steps(2), kill, ...steps(40)]);
  assert.equal(early.length, 2 + 24);
  assert.equal(early[0], "user      step 1");
  const undisturbed = lines([...steps(40), write("create Service a")]);
  assert.equal(undisturbed.length, 32);
  assert.match(undisturbed.at(-1) ?? "", /^operator {2}#1 create Service/);
});

test("A sequence begins at what disturbs: a kill, a disturbance or a write", () => {
  for (
    const entry of [
      kill,
      note("disturbance", "the clock jumps"),
      write("create Service a", { disturbed: true }),
    ]
  ) {
    const found = lines([...steps(20), entry, ...steps(40)]);
    assert.equal(found[0], "user      step 13");
  }
});

test("A sequence shows answers, and what was done without an answer", () => {
  assert.deepEqual(
    lines([
      write("create Service a"),
      write("create Service a", { code: 0 }),
      write("create Service a", { code: 0, effect: "nothing" }),
      write("patch Service a", { code: 299, effect: "nothing" }),
      write("patch Service a", {
        code: 409,
        reason: "Conflict",
        effect: "nothing",
        disturbed: true,
      }),
      event("ADDED Service a"),
    ]),
    [
      "operator  #1 create Service default/a → 201, created",
      "operator  #2 create Service default/a → no answer, created",
      "operator  #3 create Service default/a → no answer",
      "operator  #4 patch Service default/a → 299, nothing",
      "operator  #5 patch Service default/a → 409 Conflict   <<< disturbed",
      "event     ADDED Service default/a @6",
    ],
  );
});

test("A diagram escapes what Mermaid reads, and marks a lost answer", () => {
  const trace = [
    note("step", "apply a;\nb"),
    write("create Service a"),
    write("create Service a", { code: 0 }),
    event("ADDED Service a"),
    kill,
  ];
  assert.deepEqual(
    sequenceDiagram(run(trace, [])).split("\n").slice(4),
    [
      "  User->>Server: apply a#59; b",
      "  Operator->>Server: #35;1 create Service default/a",
      "  Server-->>Operator: 201, created",
      "  Operator-x Server: #35;2 create Service default/a (no answer, created)",
      "  Server--)Operator: ADDED Service a",
      "  Note over Operator: the operator is killed",
    ],
  );
});
