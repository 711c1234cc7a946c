import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileReplaced } from "../../cli/replaced_files.ts";
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
  assert.equal(await inTime("the wait ends", seen, 5_000), false);
});

test("fileReplaced does not see a file that is written, and ends while it waits", async () => {
  const folder = project();
  const stop = new AbortController();
  const seen = fileReplaced(folder, stop.signal);
  let isSeen: boolean | undefined;
  void seen.then((found) => isSeen = found);
  let writes = 0;
  await until("the file is written often", () => {
    writeFileSync(join(folder, "op.ts"), `${++writes}`);
    return writes === 10;
  });
  assert.equal(isSeen, undefined);
  stop.abort();
  assert.equal(await inTime("the wait ends", seen, 5_000), false);
});
