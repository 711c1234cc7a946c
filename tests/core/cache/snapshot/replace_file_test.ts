import assert from "node:assert/strict";
import { test } from "node:test";
import { replaceFile } from "../../../../core/cache/snapshot/replace_file.ts";

/** Replaces a file where the first attempts fail; returns the pauses. */
async function replaced(
  failures: readonly string[],
): Promise<{ attempts: number; pauses: number[]; error: string | undefined }> {
  const pauses: number[] = [];
  let attempts = 0;
  let error: string | undefined;
  await replaceFile("new", "old", {
    move: (from, to) => {
      assert.deepEqual([from, to], ["new", "old"]);
      const code = failures[attempts++];
      return code === undefined
        ? Promise.resolve()
        : Promise.reject(Object.assign(new Error(code), { code }));
    },
    pause: (milliseconds) => Promise.resolve(pauses.push(milliseconds)),
  }).catch((cause) => error = cause.code);
  return { attempts, pauses, error };
}

test("A snapshot that is open elsewhere is replaced after a pause", async () => {
  assert.deepEqual(await replaced(["EPERM", "EBUSY", "EACCES"]), {
    attempts: 4,
    pauses: [10, 20, 40],
    error: undefined,
  });
});

test("A snapshot that stays open is given up after six attempts", async () => {
  const always = Array.from({ length: 9 }, () => "EPERM");
  assert.deepEqual(await replaced(always), {
    attempts: 6,
    pauses: [10, 20, 40, 80, 160],
    error: "EPERM",
  });
});

test("A snapshot whose folder is gone is not tried again", async () => {
  assert.deepEqual(await replaced(["ENOENT"]), {
    attempts: 1,
    pauses: [],
    error: "ENOENT",
  });
});
