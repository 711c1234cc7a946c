import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { parse } from "yaml";
import {
  PACKAGES,
  releaseNotes,
  releaseVersion,
  VERSIONED,
} from "../../tools/release.ts";
import { runCommand } from "../support/child_process.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import {
  denoJson,
  packageJson,
  projectText,
  WORKSPACE,
} from "./shipped_files.ts";

const CHANGELOG =
  "# Changelog\n\n## 1.2.0\n\n- New.\n\n## 1.1.0 (2026-01-02)\n\n### Fixed\n\n- Old.\n";

test("Release notes are the section of the version", () => {
  assert.equal(releaseNotes(CHANGELOG, "1.2.0"), "- New.\n");
  assert.equal(releaseNotes(CHANGELOG, "1.1.0"), "### Fixed\n\n- Old.\n");
  assert.throws(
    () => releaseNotes(CHANGELOG, "1.2"),
    /must have a section "## 1\.2": the first section is "1\.2\.0"/,
  );
  assert.throws(() => releaseNotes("## 1.0.0\n\n## 0.9.0\n- a\n", "1.0.0"));
});

test("A release has one version, that of its tag", () => {
  const versions = { "a.json": "1.2.0", "b.json": "1.2.0" };
  assert.equal(releaseVersion("v1.2.0", versions), "1.2.0");
  assert.equal(releaseVersion("v2.0.0-rc.1", {}), "2.0.0-rc.1");
  assert.throws(() => releaseVersion("1.2.0", versions), /such as v1\.2\.3/);
  assert.throws(
    () => releaseVersion("v1.2.1", versions),
    /a\.json must have the version: received 1\.2\.0/,
  );
});

test("All packages have the same version and license", () => {
  const { version, license } = packageJson();
  for (const file of VERSIONED) {
    assert.equal(JSON.parse(projectText(file)).version, version, file);
  }
  for (const folder of PACKAGES) {
    const manifest = JSON.parse(projectText(join(folder, "package.json")));
    assert.equal(manifest.license, license);
    assert.match(manifest.repository.url, /^git\+https:\/\/github\.com\//);
  }
});

test("Both packages ship the license", () => {
  assert.equal(projectText("dev/LICENSE"), projectText("LICENSE"));
});

test("A release that is not prepared is refused and writes nothing", async () => {
  const folder = join(temporaryFolder(), "release");
  const { code, stderr } = await runCommand(
    ["node", "tools/release.ts", "v999.0.0", folder],
  );
  assert.equal(code, 1);
  assert.match(stderr, /Cannot release 999\.0\.0: deno\.json must have/);
  assert(!existsSync(folder));
});

test("Entry points have what the JSR score asks for", () => {
  for (const folder of WORKSPACE) {
    const read = (path: string) => projectText(join(folder, path));
    const { description } = JSON.parse(read("package.json"));
    assert(description.length <= 250, `${description.length} characters`);
    const { exports, publish } = denoJson(folder);
    assert(publish.include.includes("README.md"));
    assert.match(read("README.md"), /^```ts\b/m);
    for (const file of Object.values(exports)) {
      const [doc = ""] = read(file).split("*/");
      assert.match(doc, /^(?:\/\/.*\n)*\/\*\*\n[^]*@module\b/, file);
    }
  }
});

/** Steps of the release workflow after its tarballs. */
const PUBLISHING = (parse(projectText(".github/workflows/release.yaml")).jobs
  .publish.steps as readonly { readonly run?: string }[])
  .flatMap(({ run }) => /publish|gh release/.test(run ?? "") ? [run] : []);

/**
 * Runs the steps that publish, in a clone with the files of a release; the
 * programs write down how they are called.
 */
async function publish(tag: string): Promise<string> {
  const folder = temporaryFolder();
  const log = join(folder, "log");
  const programs = {
    npm:
      `if [ "$1" = view ]; then [ "$2" != a@1.0.0 ] || echo 1.0.0; else echo "npm $*" >>${log}; fi`,
    // Deno refuses to publish with files that git does not know.
    npx:
      `[ -z "$(git status --porcelain)" ] && echo "npx $* in $(basename "$PWD")" >>${log}`,
    gh: `echo "gh $*" >>${log}`,
  };
  for (const [name, text] of Object.entries(programs)) {
    chmodSync(writeText(folder, `bin/${name}`, `#!/bin/sh\n${text}\n`), 0o755);
  }
  const clone = join(folder, "clone");
  writeText(clone, ".gitignore", projectText(".gitignore"));
  writeText(clone, "dev/deno.json", projectText("dev/deno.json"));
  for (const name of ["a", "b"]) {
    const manifest = JSON.stringify({ name, version: "1.0.0" });
    writeText(folder, `${name}/package/package.json`, manifest);
  }
  for (const name of ["NOTES.md", "sbom.json", "SHA256SUMS"]) {
    writeText(clone, `release/${name}`, "");
  }
  const git = "git -c user.name=a -c user.email=a@example.com";
  const { code, stderr } = await runCommand([
    "bash",
    "-ec",
    [
      `for name in a b; do tar -czf release/$name.tgz -C ../$name package; done`,
      "git init -q && git add .gitignore dev",
      `${git} commit -q -m Start`,
      ...PUBLISHING.map((step) => `bash -e <<'STEP'\n${step}\nSTEP`),
    ].join("\n"),
  ], {
    cwd: clone,
    env: {
      TAG: tag,
      PATH: `${join(folder, "bin")}${delimiter}${process.env["PATH"]}`,
    },
  });
  assert.equal(code, 0, stderr);
  return readFileSync(log, "utf8");
}

test("The release workflow publishes what is missing, as its tag says", async () => {
  assert.equal(PUBLISHING.length, 3);
  const files =
    "release/a.tgz release/b.tgz release/sbom.json release/SHA256SUMS";
  const calls = (tag: string, npmTag: string, kind: string) =>
    `npm publish ./release/b.tgz --provenance --access public --tag ${npmTag}
npx deno publish in clone
npx deno publish in dev
gh release create ${tag} --${kind} --verify-tag --title ${tag} --notes-file release/NOTES.md ${files}
`;
  assert.equal(await publish("v1.0.0"), calls("v1.0.0", "latest", "latest"));
  const candidate = "v1.0.0-rc.1";
  assert.equal(
    await publish(candidate),
    calls(candidate, "next", "prerelease"),
  );
});
