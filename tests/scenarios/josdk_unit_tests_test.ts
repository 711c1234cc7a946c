import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  JOSDK_UNIT_CASES,
  JOSDK_UNIT_TESTS,
  WITHOUT_COUNTERPART,
} from "./josdk_unit_tests.ts";

const TESTS = dirname(dirname(fileURLToPath(import.meta.url)));

/** The titles of all tests, without the names in brackets at their ends. */
async function titles(): Promise<Set<string>> {
  const found = new Set<string>();
  const files = await readdir(TESTS, { recursive: true });
  for (const file of files.filter((file) => file.endsWith("_test.ts"))) {
    const content = await readFile(join(TESTS, file), "utf8");
    const written = content.matchAll(/\b(?:scenario|test)\(\s*"([^"]+)"/g);
    for (const [, title = ""] of written) {
      found.add(title.replace(/( \[[^\]]+\])+$/, ""));
    }
  }
  return found;
}

/** The cases of a suite, whether there is a test for them here or a reason. */
function casesOf(suite: string): readonly string[] {
  const apart = Object.values(WITHOUT_COUNTERPART).map((suites) =>
    suites[suite] ?? ""
  );
  return words([...Object.values(JOSDK_UNIT_TESTS[suite] ?? {}), ...apart]);
}

function words(texts: readonly string[]): readonly string[] {
  return texts.join(" ").split(/\s+/).filter((word) => word !== "");
}

test("Every listed unit test has a test of the title that it names", async () => {
  const known = await titles();
  const missing = Object.values(JOSDK_UNIT_TESTS)
    .flatMap((suite) => Object.keys(suite))
    .filter((title) => !known.has(title));
  assert.deepEqual(missing, []);
});

test("Every case of the listed suites is listed, and once", () => {
  for (const [suite, count] of Object.entries(JOSDK_UNIT_CASES)) {
    const cases = casesOf(suite);
    assert.equal(cases.length, count, suite);
    assert.equal(new Set(cases).size, count, suite);
  }
  const suites = Object.keys(JOSDK_UNIT_CASES);
  assert.deepEqual(Object.keys(JOSDK_UNIT_TESTS).sort(), suites.sort());
});

test("Few cases have no counterpart", () => {
  const apart = words(
    Object.values(WITHOUT_COUNTERPART).flatMap((suites) =>
      Object.values(suites)
    ),
  );
  const all = Object.values(JOSDK_UNIT_CASES).reduce((a, b) => a + b, 0);
  assert.equal(all, 346);
  assert.ok(apart.length < all / 10, `${apart.length} of ${all}`);
});
