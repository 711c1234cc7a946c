import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { shownPath } from "../../../testing/check/operator_source.ts";

test("shownPath gives a path that a shell reads as one word", () => {
  const here = process.cwd();
  const cases = [
    ["a.ts", "a.ts"],
    ["./b/a.ts", "b/a.ts"],
    [pathToFileURL(join(here, "my operators", "a.ts")), "'my operators/a.ts'"],
    [pathToFileURL(join(here, "a.ts")).href, "a.ts"],
    ["/other/it's.ts", "'/other/it'\\''s.ts'"],
  ] as const;
  for (const [given, shown] of cases) assert.equal(shownPath(given), shown);
});
