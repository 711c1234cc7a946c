import assert from "node:assert/strict";
import { existsSync, globSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import {
  packageJson,
  projectText,
  updating,
  WORKSPACE,
} from "./shipped_files.ts";

const QUOTED_REGEXP = /^```\w+ ignore from=(\S+)\n([^]*?)^```$/gm;
const EMBEDDED_REGEXP = /^```(\w+(?: ignore)?) file=(\S+)\n([^]*?)^```$/gm;
const LINK_REGEXP = /\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g;
const SCRIPT_REGEXP = /npm run (?:-s )?([\w:-]+)/g;

/** README and guides. */
const PAGES: readonly string[] = [
  "README.md",
  ...globSync("docs/**/*.md", { cwd: PROJECT }).map((path) =>
    path.replaceAll("\\", "/")
  ).toSorted(),
];

/** Page with the present content of each embedded file. */
function refreshed(text: string): string {
  return text.replace(
    EMBEDDED_REGEXP,
    (_, language, file) =>
      `\`\`\`${language} file=${file}\n${projectText(file)}\`\`\``,
  );
}

test("README and guides show their example files as they are", () => {
  for (const page of PAGES) {
    if (updating()) {
      writeFileSync(join(PROJECT, page), refreshed(projectText(page)));
    }
    const text = projectText(page);
    assert.equal(
      text,
      refreshed(text),
      `${page}: UPDATE=1 npm run test:package`,
    );
  }
  assert.match(projectText("README.md"), EMBEDDED_REGEXP);
});

/** Code without what the formatter changes when a part of it stands alone. */
function unformatted(code: string): string {
  return code.replaceAll(/[\s,;]/g, "");
}

test("README and guides quote their examples as they are", () => {
  for (const page of PAGES) {
    for (
      const [, file = "", quote = ""] of projectText(page).matchAll(
        QUOTED_REGEXP,
      )
    ) {
      assert(
        unformatted(projectText(file)).includes(unformatted(quote)),
        `${page}: not in ${file}:\n${quote}`,
      );
    }
  }
});

test("README and guides link to files that exist", () => {
  for (const page of PAGES) {
    for (const [, path = ""] of projectText(page).matchAll(LINK_REGEXP)) {
      assert(
        existsSync(join(PROJECT, dirname(page), path)),
        `${page}: ${path}`,
      );
    }
  }
});

test("README and guides name only existing scripts", () => {
  const made = "packages/create-operator/template/node/_package.json";
  const scripts = {
    ...packageJson().scripts,
    ...JSON.parse(projectText(made)).scripts,
  };
  for (const page of PAGES) {
    for (const [, script = ""] of projectText(page).matchAll(SCRIPT_REGEXP)) {
      assert(script in scripts, `${page}: ${script}`);
    }
  }
});

test("README names every entry point", () => {
  const readme = projectText("README.md");
  for (const folder of WORKSPACE) {
    const { name, exports } = packageJson(folder);
    for (const entry of Object.keys(exports)) {
      if (entry === "./internal") continue;
      assert(readme.includes(`\`${name}${entry.slice(1)}\``), name + entry);
    }
  }
});

test("README is short, and has numbers and a picture of the guides", () => {
  const readme = projectText("README.md");
  assert(readme.split("\n").length <= 201);
  assert.match(readme, /^!\[.+\]\(docs\/window\.png\)$/m);
  const guide = projectText("docs/performance.md");
  const [, table = ""] = readme.split("## Numbers");
  const numbers = [
    ...table.matchAll(/\*\*(.+?)\*\*|\| ([\w-]+ [\d,.]+ \S+) +\|/g),
  ]
    .map(([, own, other]) => own ?? other ?? "");
  assert.equal(numbers.length, 7);
  for (const number of numbers) assert(guide.includes(number), number);
});

test("Every guide is linked in the index of its folder or of all guides", () => {
  const linked = new Set(
    PAGES.filter((page) => page.endsWith("/README.md")).flatMap((index) =>
      [...projectText(index).matchAll(LINK_REGEXP)].map(([, path = ""]) =>
        posix.join(posix.dirname(index), path)
      )
    ),
  );
  for (const page of PAGES) {
    if (!page.startsWith("docs/") || page === "docs/README.md") continue;
    assert(linked.has(page), page);
  }
});

test("ARCHITECTURE names only existing files", () => {
  const files = globSync("{core,sources,workflows,dev}/**", {
    cwd: PROJECT,
  }).map((path) => `/${path.replaceAll("\\", "/")}`);
  const names = projectText("ARCHITECTURE.md").matchAll(/`([\w./-]+\.ts)`/g);
  for (const [, name = ""] of names) {
    if (name === "mod.ts" || existsSync(join(PROJECT, name))) continue;
    assert(files.some((file) => file.endsWith(`/${name}`)), name);
  }
});
