import assert from "node:assert/strict";
import {
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import {
  fileReplaced,
  losesReplacedFiles,
} from "../../dev/cli/replaced_files.ts";
import { inTime } from "../support/in_time.ts";
import { until } from "../support/until.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

/** Folder with code. */
function project(): string {
  const folder = temporaryFolder();
  for (
    const name of [
      "op.ts",
      "lib/part.mjs",
      "lib/data.json",
    ]
  ) writeText(folder, name, "1");
  return folder;
}

/** Replaces a file by another, as an editor does. */
function replace(folder: string, name: string): void {
  writeFileSync(join(folder, "draft"), "2");
  renameSync(join(folder, "draft"), join(folder, name));
}

for (const name of ["op.ts", "lib/part.mjs", "lib/data.json"]) {
  test(`fileReplaced sees that ${name} is replaced`, async () => {
    const folder = project();
    const stop = new AbortController();
    const seen = fileReplaced(folder, stop.signal);
    let isSeen: boolean | undefined;
    void seen.then((found) => isSeen = found);
    try {
      // Nothing tells when all folders are watched.
      await until("the file is seen", () => {
        if (isSeen === undefined) replace(folder, name);
        return isSeen !== undefined;
      });
      assert.equal(isSeen, true);
    } finally {
      stop.abort();
      await seen;
    }
  });
}

test("fileReplaced ends with its signal", async () => {
  assert.equal(await fileReplaced(project(), AbortSignal.abort()), false);
  const stop = new AbortController();
  const seen = fileReplaced(project(), stop.signal);
  stop.abort();
  assert.equal(await inTime("the wait ends", seen), false);
});

/** Makes ten changes in a folder that are no replacement. */
async function changeUnseen(
  folder: string,
  change: (count: number) => void,
): Promise<void> {
  const stop = new AbortController();
  const seen = fileReplaced(folder, stop.signal);
  let isSeen: boolean | undefined;
  void seen.then((found) => isSeen = found);
  try {
    let count = 0;
    await until("ten changes are made", () => {
      change(++count);
      return count === 10;
    });
    assert.equal(isSeen, undefined);
  } finally {
    stop.abort();
    assert.equal(await inTime("the wait ends", seen), false);
  }
}

test("fileReplaced does not see a file that is written, and ends while it waits", async () => {
  const folder = project();
  await changeUnseen(
    folder,
    (count) => writeFileSync(join(folder, "op.ts"), `${count}`),
  );
});

for (
  const name of [
    "node_modules/part/index.js",
    ".git/hook.js",
    "notes.txt",
  ]
) {
  test(`fileReplaced does not see that ${name} is replaced`, async () => {
    const folder = project();
    writeText(folder, name, "1");
    await changeUnseen(folder, () => replace(folder, name));
  });
}

test("fileReplaced does not see that a file is deleted", async () => {
  const folder = project();
  await changeUnseen(folder, (count) => {
    if (count === 5) rmSync(join(folder, "op.ts"));
    writeFileSync(join(folder, `${count}.txt`), "");
  });
});

test("Only on Linux, and not on Deno, watchers lose files that are replaced", () => {
  const found = ["linux", "darwin", "win32"].map((platform) =>
    ["node", "bun", "deno"].filter((runtime) =>
      losesReplacedFiles(platform, runtime)
    )
  );
  assert.deepEqual(found, [["node", "bun"], [], []]);
});

test("fileReplaced watches 200 folders", {
  skip: losesReplacedFiles()
    ? false
    : "nothing uses it here, and Deno takes seconds for it",
}, async () => {
  const folder = temporaryFolder();
  const deep = (count: number) => `${"a/".repeat(count - 1)}op.ts`;
  for (const count of [1, 200, 201]) writeText(folder, deep(count), "1");
  const stop = new AbortController();
  const seen = fileReplaced(folder, stop.signal);
  let isSeen: boolean | undefined;
  void seen.then((found) => isSeen = found);
  try {
    let count = 0;
    await until("the last file is replaced often", () => {
      replace(folder, deep(201));
      return ++count === 10;
    });
    assert.equal(isSeen, undefined);
    await until("the file before is seen", () => {
      if (isSeen === undefined) replace(folder, deep(200));
      return isSeen !== undefined;
    });
    assert.equal(isSeen, true);
  } finally {
    stop.abort();
    await seen;
  }
});

/** Number of files and folders that this process watches, on Linux. */
function watched(): number {
  const folder = "/proc/self/fdinfo";
  return readdirSync(folder).flatMap((name) => {
    try {
      return readFileSync(join(folder, name), "utf8").match(/^inotify /gm) ??
        [];
    } catch {
      return []; // It is closed by now.
    }
  }).length;
}

test("fileReplaced watches nothing after its end", async () => {
  const before = watched();
  const stop = new AbortController();
  const seen = fileReplaced(project(), stop.signal);
  if (process.platform === "linux") {
    await until("the folders are watched", () => watched() > before);
  }
  stop.abort();
  await seen;
  await until("nothing is watched", () => watched() <= before);
});
