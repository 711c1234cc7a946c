import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { packageJson, projectText, updating } from "./shipped_files.ts";

const QUOTED_REGEXP = /^```\w+ from=(\S+)\n([^]*?)^```$/gm;
const EMBEDDED_REGEXP = /^```(\w+) file=(\S+)\n([^]*?)^```$/gm;

/** README with the present content of each embedded file. */
function refreshed(readme: string): string {
  return readme.replace(
    EMBEDDED_REGEXP,
    (_, language, file) =>
      `\`\`\`${language} file=${file}\n${projectText(file)}\`\`\``,
  );
}

test("README shows its example files as they are", () => {
  if (updating()) {
    writeFileSync(
      join(PROJECT, "README.md"),
      refreshed(projectText("README.md")),
    );
  }
  const readme = projectText("README.md");
  assert([...readme.matchAll(EMBEDDED_REGEXP)].length > 0);
  assert.equal(readme, refreshed(readme), "UPDATE=1 npm run test:package");
});

test("README quotes its examples as they are", () => {
  const quotes = [...projectText("README.md").matchAll(QUOTED_REGEXP)];
  assert(quotes.length > 0);
  for (const [, file = "", quote = ""] of quotes) {
    assert(projectText(file).includes(quote), `not in ${file}:\n${quote}`);
  }
});

test("README links to files that exist", () => {
  const readme = projectText("README.md");
  for (const [, path = ""] of readme.matchAll(/\]\((?!https?:|#)([^)]+)\)/g)) {
    assert(existsSync(join(PROJECT, path)), path);
  }
});

test("README names every entry point and only existing scripts", () => {
  const readme = projectText("README.md");
  const { exports, scripts } = packageJson();
  for (const entry of Object.keys(exports)) {
    assert(readme.includes(`\`@coracle/operator${entry.slice(1)}\``), entry);
  }
  for (const [, script = ""] of readme.matchAll(/npm run (?:-s )?([\w:]+)/g)) {
    assert(script in scripts, script);
  }
});
