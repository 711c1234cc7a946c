import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";

interface LockedPackage {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

for (const folder of [".", "bench", "site"]) {
  // Without it, `npm ci` fails on every machine.
  test(`The lock file of ${folder} has the packages of every platform`, () => {
    const file = join(PROJECT, folder, "package-lock.json");
    assert.ok(existsSync(file));
    const packages: Readonly<Record<string, LockedPackage>> = JSON.parse(
      readFileSync(file, "utf8"),
    ).packages;
    const names = Object.keys(packages);
    for (
      const [name, { optionalDependencies = {} }] of Object.entries(packages)
    ) {
      for (const dependency of Object.keys(optionalDependencies)) {
        assert.ok(
          names.some((path) => path.endsWith(`node_modules/${dependency}`)),
          `${dependency} of ${name}`,
        );
      }
    }
  });
}
