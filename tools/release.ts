/**
 * Prepares what a release consists of: `npm run release -- v1.2.3 FOLDER` checks
 * that all versions and the changelog are those of the tag, builds, and writes
 * into a new folder the tarballs of the packages, an SBOM (CycloneDX) of what they
 * depend on, the notes of the release from the changelog, and SHA-256 checksums.
 * It publishes nothing; `.github/workflows/release.yaml` does.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Folders of the packages that are published to npm. */
export const PACKAGES: readonly string[] = [
  ".",
  "dev",
  "packages/create-operator",
];

/** Files whose `version` is that of the release. */
export const VERSIONED: readonly string[] = [
  "deno.json",
  "deno.docs.json",
  "dev/deno.json",
  ...PACKAGES.map((folder) => join(folder, "package.json")),
];

/**
 * Notes of a release: the section of the changelog.
 *
 * @throws {Error} If the changelog has no such section, or it is empty.
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/)[0] === version);
  const notes = section?.replace(/^.*\n/, "").trim();
  if (notes) return `${notes}\n`;
  const [first = "none"] = sections.map((text) => text.split("\n")[0]);
  throw new Error(
    `Cannot release ${version}: CHANGELOG.md must have a section "## ${version}": the first section is "${first}"`,
  );
}

/**
 * Version of a tag such as `v1.2.3`.
 *
 * @throws {Error} If it is not a version, or a file has another one.
 */
export function releaseVersion(
  tag: string,
  versions: Readonly<Record<string, string>>,
): string {
  const [, version] = /^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$/.exec(tag) ?? [];
  if (version === undefined) {
    throw new Error(
      `Cannot release ${tag}: the tag must be a version such as v1.2.3`,
    );
  }
  for (const [file, found] of Object.entries(versions)) {
    if (found === version) continue;
    throw new Error(
      `Cannot release ${version}: ${file} must have the version: received ${found}`,
    );
  }
  return version;
}

function npm(args: readonly string[], cwd = ROOT): string {
  return execFileSync("npm", args, {
    cwd,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    stdio: ["ignore", "pipe", "inherit"],
    shell: process.platform === "win32",
  });
}

function prepare(tag: string, folder: string): void {
  const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
  const version = releaseVersion(
    tag,
    Object.fromEntries(
      VERSIONED.map((file) => [file, JSON.parse(read(file)).version as string]),
    ),
  );
  const notes = releaseNotes(read("CHANGELOG.md"), version);
  const place = resolve(folder);
  mkdirSync(place);
  // npm pack builds, by the script prepack.
  for (const path of PACKAGES) {
    npm(["pack", `--pack-destination=${place}`], join(ROOT, path));
  }
  const sbom = ["--omit=dev", "--package-lock-only", "--sbom-format=cyclonedx"];
  writeFileSync(join(place, "sbom.json"), npm(["sbom", ...sbom]));
  const sums = readdirSync(place).toSorted().map((name) => {
    const hash = createHash("sha256").update(readFileSync(join(place, name)));
    return `${hash.digest("hex")}  ${name}\n`;
  });
  writeFileSync(join(place, "SHA256SUMS"), sums.join(""));
  writeFileSync(join(place, "NOTES.md"), notes);
}

if (realpathSync(process.argv[1] ?? "") === fileURLToPath(import.meta.url)) {
  const [tag, folder, ...rest] = process.argv.slice(2);
  if (tag === undefined || folder === undefined || rest.length > 0) {
    process.stderr.write("Write: npm run release -- v1.2.3 FOLDER\n");
    process.exitCode = 2;
  } else {
    try {
      prepare(tag, folder);
    } catch (error) {
      process.stderr.write(`${(error as Error).message}\n`);
      process.exitCode = 1;
    }
  }
}
