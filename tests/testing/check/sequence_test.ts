import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  RunRecord,
  TraceEntry,
} from "../../../testing/check/run_record.ts";
import { sequenceText } from "../../../testing/check/sequence.ts";

test("A sequence has one line for the same requests in a row, such as polls", () => {
  const note = (at: number, what: "step" | "external", text: string) =>
    ({ type: "note", at, what, text }) as TraceEntry;
  const polls = Array.from(
    { length: 50 },
    (_, index) =>
      note(1_000 + index * 1_000, "external", "GET http://db.test/"),
  );
  const trace = [
    note(0, "step", "apply Database default/a"),
    ...polls,
    note(60_000, "external", "POST http://db.test/"),
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
