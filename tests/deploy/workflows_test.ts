import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { goTool, NO_GO } from "../support/go_tool.ts";

const OURS = globSync(".github/workflows/*.yaml", { cwd: PROJECT });
const TEMPLATES = globSync(
  "packages/create-operator/template/*/.github/workflows/*.yaml",
  { cwd: PROJECT },
);

test("actionlint finds no fault in workflows, ours and those of new projects", async (t) => {
  const actionlint = await goTool("actionlint");
  if (actionlint === undefined) return t.skip(NO_GO);
  assert.equal(OURS.length, 5);
  assert.equal(TEMPLATES.length, 3);
  const { code, stdout } = await runCommand([
    actionlint,
    "-no-color",
    ...OURS,
    ...TEMPLATES,
  ]);
  assert.equal(code, 0, stdout);
});

test("Our workflows pin actions by commit and keep no credentials", () => {
  for (const file of OURS) {
    const text = readFileSync(join(PROJECT, file), "utf8");
    for (const [, action = ""] of text.matchAll(/uses: (.*)/g)) {
      if (action.startsWith("./")) continue;
      assert.match(
        action,
        /^(actions|github|ossf)\/[-\w/]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/,
      );
    }
    assert.match(text, /^permissions:\n {2}contents: read$/m);
    const checkouts = text.match(/actions\/checkout@/g)?.length;
    assert.equal(text.match(/persist-credentials: false/g)?.length, checkouts);
    assert.doesNotMatch(text, /secrets\./);
  }
});
