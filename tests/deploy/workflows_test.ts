import assert from "node:assert/strict";
import { chmodSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { goTool, NO_GO } from "../support/go_tool.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const OURS = globSync(".github/workflows/*.yaml", { cwd: PROJECT });
const TEMPLATES = globSync(
  "packages/create-operator/template/*/.github/workflows/*.yaml",
  { cwd: PROJECT },
);

/** Workflows that the guides show, written into files. */
function guideWorkflows(): readonly string[] {
  const folder = temporaryFolder();
  return globSync("docs/**/*.md", { cwd: PROJECT }).sort().flatMap((guide) =>
    Array.from(
      readFileSync(join(PROJECT, guide), "utf8")
        .matchAll(/^```yaml\n((?:name: .*\n)?on: [^]*?)^```$/gm),
      ([, text = ""], index) =>
        writeText(folder, `${guide.replaceAll("/", "-")}-${index}.yaml`, text),
    )
  );
}

test("actionlint finds no fault in workflows: ours, of guides and new projects", async (t) => {
  const actionlint = await goTool("actionlint");
  if (actionlint === undefined) return t.skip(NO_GO);
  assert.equal(OURS.length, 5);
  assert.equal(TEMPLATES.length, 3);
  const guides = guideWorkflows();
  assert.ok(guides.some((file) => file.includes("plan.md")), `${guides}`);
  const { code, stdout } = await runCommand([
    actionlint,
    "-no-color",
    ...OURS,
    ...TEMPLATES,
    ...guides,
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

test("The workflow of a plan passes for exit codes 0 and 2 alone", async () => {
  const folder = temporaryFolder();
  const guide = readFileSync(join(PROJECT, "docs/plan.md"), "utf8");
  const [, script = ""] = /- name: Plan\n[^]*? run: \|\n([^]*?)\n {6}- /.exec(
    guide,
  ) ?? [];
  const npx = writeText(
    folder,
    "npx",
    '#!/bin/sh\nshift 4\ntest "$(cat "$1")" = config || exit 9\nexit $CODE\n',
  );
  chmodSync(npx, 0o755);
  for (
    const [code, passes] of [[0, true], [2, true], [1, false], [137, false]]
  ) {
    const run = await runCommand(["bash", "-e", "-c", script], {
      cwd: folder,
      env: {
        PATH: `${folder}:${process.env["PATH"]}`,
        ...{ RUNNER_TEMP: folder, KUBECONFIG_DATA: "config" },
        CODE: String(code),
      },
    });
    assert.equal(run.code === 0, passes, `${code}: ${run.stderr}`);
  }
});
