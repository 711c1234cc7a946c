import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";

const LIST = readFileSync(`${PROJECT}/tests/BEHAVIOURS.md`, "utf8");
/** Ids of behaviours in the order of the list. */
const LISTED: readonly string[] = [
  ...LIST.matchAll(/^- \*\*([\w.#]+)\*\*: \S/gm),
]
  .map(([, id = ""]) => id);

/** Ids at the ends of test titles, each with one file that has it. */
function idsInTitles(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const files = globSync("{tests,examples}/**/*_test.ts", { cwd: PROJECT });
  for (const file of files) {
    const text = readFileSync(`${PROJECT}/${file}`, "utf8");
    // A title is a string on one line that ends with its ids.
    const titles = text.matchAll(/["`][^"`\n]*?((?:\s\[[\w.#]+\])+)["`]/g);
    for (const [, ids = ""] of titles) {
      for (const [, id = ""] of ids.matchAll(/\[([\w.#]+)\]/g)) {
        found.set(id, file);
      }
    }
  }
  return found;
}

test("Every id in a test title is listed in tests/BEHAVIOURS.md", () => {
  const listed = new Set(LISTED);
  const unknown = [...idsInTitles()].filter(([id]) => !listed.has(id));
  assert.deepEqual(unknown, []);
});

test("Every id of tests/BEHAVIOURS.md is in the title of a test", () => {
  const shown = idsInTitles();
  assert.deepEqual(LISTED.filter((id) => !shown.has(id)), []);
  assert.ok(LISTED.length > 300, `${LISTED.length} ids were found in the list`);
});

test("Every id of tests/BEHAVIOURS.md is listed once", () => {
  const repeated = LISTED.filter((id, index) => LISTED.indexOf(id) !== index);
  assert.deepEqual(repeated, []);
});
