import assert from "node:assert/strict";
import { test } from "node:test";
import { LatestLines } from "../../../cli/window/operator_link.ts";

test("LatestLines finds the lines about an object, and not about another", () => {
  const lines = new LatestLines();
  const about = [
    "12:00  gadgets default/web  Reconciled",
    '{"object":"default/web"}',
  ];
  const others = ["12:00  gadgets default/web-2  Reconciled", "my-default/web"];
  for (const line of [...about, ...others]) lines.add(`${line}\n`);
  assert.deepEqual(lines.about("default/web"), about);
});

test("LatestLines keeps the latest 2000 lines without colours", () => {
  const lines = new LatestLines();
  for (let number = 0; number <= 2_000; number++) {
    lines.add(`\x1b[1ma/b\x1b[0m ${number}\n`);
  }
  const kept = lines.about("a/b");
  assert.equal(kept.length, 2_000);
  assert.deepEqual([kept[0], kept.at(-1)], ["a/b 1", "a/b 2000"]);
});
