import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  PACKAGES,
  releaseNotes,
  releaseVersion,
  VERSIONED,
} from "../../tools/release.ts";
import { runCommand } from "../support/child_process.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { denoJson, packageJson, projectText } from "./shipped_files.ts";

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
  const { description } = JSON.parse(projectText("package.json"));
  assert(description.length <= 250, `${description.length} characters`);
  assert(denoJson().publish.include.includes("README.md"));
  assert.match(projectText("README.md"), /^```ts /m);
  for (const file of Object.values(denoJson().exports)) {
    const [doc = ""] = projectText(file).split("*/");
    assert.match(doc, /^(?:\/\/.*\n)*\/\*\*\n[^]*@module\b/, file);
  }
});
