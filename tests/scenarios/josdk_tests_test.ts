import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { JOSDK_TESTS } from "./josdk_tests.ts";

const HERE = dirname(fileURLToPath(import.meta.url));

/** The names in brackets in the titles of the scenarios. */
async function namedInTitles(): Promise<Set<string>> {
  const names = new Set<string>();
  const files = await readdir(HERE, { recursive: true });
  for (const file of files.filter((file) => file.endsWith("_test.ts"))) {
    const content = await readFile(join(HERE, file), "utf8");
    const titles = content.matchAll(/\b(?:scenario|test)\(\s*(["`])(.+?)\1/g);
    for (const [, , title = ""] of titles) {
      for (const [, name = ""] of title.matchAll(/\[(\w+)\]/g)) names.add(name);
    }
  }
  return names;
}

test("Every listed behaviour has a scenario with its name in the title", async () => {
  const named = await namedInTitles();
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
