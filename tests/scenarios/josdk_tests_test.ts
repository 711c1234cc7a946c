import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { JOSDK_FLAWS, JOSDK_TESTS } from "./josdk_tests.ts";

const HERE = dirname(fileURLToPath(import.meta.url));

/** What stands in brackets in the titles of the tests of a folder. */
async function namedInTitles(folder: string): Promise<Set<string>> {
  const names = new Set<string>();
  const files = await readdir(folder, { recursive: true });
  for (const file of files.filter((file) => file.endsWith("_test.ts"))) {
    const content = await readFile(join(folder, file), "utf8");
    const titles = content.matchAll(/\b(?:scenario|test)\(\s*(["`])(.+?)\1/g);
    for (const [, , title = ""] of titles) {
      for (const [, name = ""] of title.matchAll(/\[([\w.]+)\]/g)) {
        names.add(name);
      }
    }
  }
  return names;
}

test("Every listed behaviour has a scenario with its name in the title", async () => {
  const named = await namedInTitles(HERE);
  const missing = Object.values(JOSDK_TESTS).flat().filter((name) =>
    !named.has(name)
  );
  assert.deepEqual(missing, []);
  assert.equal(Object.values(JOSDK_TESTS).flat().length, 145);
});

test("No listed behaviour is listed twice", () => {
  const names = Object.values(JOSDK_TESTS).flat();
  assert.equal(new Set(names).size, names.length);
});

test("Every weak point of JOSDK has a test that would fail there, with its id in the title", async () => {
  const named = await namedInTitles(dirname(HERE));
  assert.deepEqual(JOSDK_FLAWS.filter((id) => !named.has(id)), []);
});
