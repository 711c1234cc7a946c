import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";

const LONGEST = 80;
/** Calls that define a test, with the literal title as their first argument. */
const TITLE_REGEXP =
  /^ *(?:await )?(?:\w*[tT]est|\w*[sS]cenario|informerTest|it)\(\s*(["`])((?:\\.|(?!\1)[^\\\n])*)\1/gm;
const IDS_REGEXP = /(?: \[[\w.#]+\])+$/;

test(`Test titles have at most ${LONGEST} characters without their ids`, () => {
  const files = globSync("{tests,examples}/**/*_test.ts", { cwd: PROJECT });
  const titles = files.flatMap((file) => {
    const text = readFileSync(`${PROJECT}/${file}`, "utf8");
    return [...text.matchAll(TITLE_REGEXP)].map(([, , title = ""]) => ({
      file,
      title: title.replaceAll('\\"', '"').replace(IDS_REGEXP, "")
        .replaceAll(/\$\{[^}]*\}/g, "…"),
    }));
  });
  assert(titles.length > 1_000, `only ${titles.length} titles were found`);
  const long = titles.filter(({ title }) => title.length > LONGEST);
  assert.deepEqual(long, []);
});
