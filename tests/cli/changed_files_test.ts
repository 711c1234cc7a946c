import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CodeWatcher } from "../../dev/cli/changed_files.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

/** A watched folder with code, and the files that were seen to change. */
async function project(names: readonly string[] = []) {
  const folder = temporaryFolder();
  for (const name of ["op.ts", "lib/part.mjs", "lib/data.json", ...names]) {
    writeText(folder, name, "1");
  }
  const seen: string[] = [];
  const watcher = new CodeWatcher((files) =>
    void seen.push(...files.map((file) => file.slice(folder.length + 1)))
  );
  await watcher.addTree(folder);
  return { folder, seen, watcher };
}

/** Replaces a file by another, as an editor does. */
function replace(folder: string, name: string, text = "2"): void {
  writeFileSync(join(folder, "draft"), text);
  renameSync(join(folder, "draft"), join(folder, name));
}

for (const name of ["op.ts", "lib/part.mjs", "lib/data.json"]) {
  for (const [how, change] of [["written", writeText], ["replaced", replace]]) {
    test(`CodeWatcher sees that ${name} is ${how}, again and again`, async () => {
      const { folder, seen, watcher } = await project();
      try {
        for (const text of ["two", "three!", "four words"]) {
          seen.length = 0;
          (change as typeof writeText)(folder, name, text);
          await until("the change is seen", () => seen.includes(name));
        }
      } finally {
        watcher.close();
      }
    });
  }
}

for (
  const [what, change] of Object.entries({
    "a file of a package": (folder: string) =>
      replace(folder, "node_modules/part/index.js"),
    "a file of a hidden folder": (folder: string) =>
      replace(folder, ".git/hook.js"),
    "a file that is no code": (folder: string) => replace(folder, "notes.txt"),
    "a file that is deleted": (folder: string) =>
      rmSync(join(folder, "lib/data.json")),
  })
) {
  test(`CodeWatcher does not see ${what}`, async () => {
    const names = ["node_modules/part/index.js", ".git/hook.js", "notes.txt"];
    const { folder, seen, watcher } = await project(names);
    try {
      change(folder);
      // What comes later is seen after it.
      writeText(folder, "op.ts", "changed");
      await until("a change is seen", () => seen.length > 0);
      assert.deepEqual([...new Set(seen)], ["op.ts"]);
    } finally {
      watcher.close();
    }
  });
}

test("CodeWatcher sees files outside of the folder that it is given", async () => {
  const { seen, watcher } = await project();
  const other = temporaryFolder();
  const file = writeText(other, "shared.ts", "1");
  const inPackage = writeText(other, "node_modules/part/index.js", "1");
  try {
    await watcher.addFiles([file, inPackage]);
    writeText(other, "node_modules/part/index.js", "changed");
    writeText(other, "shared.ts", "changed");
    await until("the change is seen", () => seen.length > 0);
    assert.equal(seen.some((name) => name.endsWith("index.js")), false);
  } finally {
    watcher.close();
  }
});

test("CodeWatcher sees nothing after it is closed", async () => {
  const { folder, seen, watcher } = await project();
  const other = await project();
  watcher.close();
  try {
    writeText(folder, "op.ts", "changed");
    writeText(other.folder, "op.ts", "changed");
    await until("the other sees its change", () => other.seen.length > 0);
    assert.deepEqual(seen, []);
  } finally {
    other.watcher.close();
  }
});

test("CodeWatcher sees files of a folder that is deleted and made again", async () => {
  const { folder, seen, watcher } = await project();
  try {
    for (const text of ["two", "three!"]) {
      rmSync(join(folder, "lib"), { recursive: true });
      seen.length = 0;
      writeText(folder, "op.ts", text);
      await until("the other file is seen", () => seen.includes("op.ts"));
      mkdirSync(join(folder, "lib"));
      writeText(folder, "lib/part.mjs", text);
      await until("it is seen again", () => seen.includes("lib/part.mjs"));
      seen.length = 0;
      writeText(folder, "lib/part.mjs", `${text} and more`);
      await until("a change is seen", () => seen.includes("lib/part.mjs"));
    }
  } finally {
    watcher.close();
  }
});

test("CodeWatcher sees loaded files of a tree with more folders than it watches", async () => {
  const names = Array.from({ length: 210 }, (_, at) => `many/${at}/part.ts`);
  const { folder, seen, watcher } = await project(names);
  try {
    await watcher.addFiles(names.map((name) => join(folder, name)));
    for (const name of names) writeText(folder, name, "changed");
    await until(
      "all are seen",
      () => names.every((name) => seen.includes(name)),
    );
  } finally {
    watcher.close();
  }
});

test("CodeWatcher reports a folder that the system does not watch", async () => {
  const failures: string[] = [];
  const watcher = new CodeWatcher(
    () => {},
    ({ message }) => failures.push(message),
    () => {
      throw new Error(
        "ENOSPC: System limit for number of file watchers reached",
      );
    },
  );
  await watcher.addTree(temporaryFolder());
  watcher.close();
  assert.deepEqual(failures, [
    "ENOSPC: System limit for number of file watchers reached",
  ]);
});
