import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { FLUX_FLINK_IDS } from "./flux_flink_ids.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** The ids in brackets in the titles of all tests and examples. */
async function namedInTitles(): Promise<Set<string>> {
  const names = new Set<string>();
  for (const folder of ["tests", "examples"]) {
    const files = await readdir(join(ROOT, folder), { recursive: true });
    for (const file of files.filter((file) => file.endsWith("_test.ts"))) {
      const content = await readFile(join(ROOT, folder, file), "utf8");
      // A title is a text of its own, on one line, and ends with its ids.
      const titles = content.matchAll(
        /["`][^"`\n]*?((?:\s\[[A-Z]\d+\])+)["`]/g,
      );
      for (const [, ids = ""] of titles) {
        for (const [id] of ids.matchAll(/[A-Z]\d+/g)) names.add(id);
      }
    }
  }
  return names;
}

test("Every listed behaviour of Flux, kstatus and Flink has a test with its id in the title", async () => {
  const named = await namedInTitles();
  const missing = Object.values(FLUX_FLINK_IDS).flat()
    .filter((id) => !named.has(id));
  assert.deepEqual(missing, []);
});

test("No behaviour of Flux, kstatus and Flink is listed twice, and none is unlisted", async () => {
  const listed = Object.values(FLUX_FLINK_IDS).flat();
  assert.equal(new Set(listed).size, listed.length);
  const letters = new Set(listed.map((id) => id[0]));
  const unlisted = [...await namedInTitles()]
    .filter((id) => letters.has(id[0]) && !listed.includes(id));
  assert.deepEqual(unlisted, []);
});
