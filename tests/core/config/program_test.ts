import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { systemClock } from "@coracle/operator/client";
import {
  groupOptions,
  notStarted,
  type ProgramOptions,
  runProgram,
} from "../../../core/config/program.ts";
import { homeFolders } from "../../../core/config/load_config.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const FOLDER = temporaryFolder();

/** Runs a text as a program of this runtime, on each system. */
function run(text: string, options: Partial<ProgramOptions> = {}) {
  const file = writeText(FOLDER, `${text.length}.mjs`, text);
  return runProgram(process.execPath, {
    args: ["Deno" in globalThis ? "run" : "", file].filter((one) => one !== ""),
    env: {},
    timeout: 60_000,
    maxOutput: 1_000,
    clock: systemClock,
    failure: (why) => new Error(why),
    ...options,
  });
}

test("A program gets its input and its output is read, on each system", async () => {
  const text =
    'process.stdin.pipe(process.stdout); process.stdout.write("got: ");';
  const header = 'import process from "node:process";';
  assert.equal(await run(header + text, { input: "é" }), "got: é");
});

test("A program that does not end is killed, on each system", async () => {
  await assert.rejects(
    run("setInterval(() => {}, 1_000);", { timeout: 500 }),
    { message: "did not end within 500 ms" },
  );
});

test("A program has a group of its own, but for Windows", () => {
  const of = (interactive: boolean, platform: string) =>
    groupOptions(interactive, platform);
  assert.deepEqual(of(false, "linux"), { detached: true, windowsHide: true });
  assert.deepEqual(of(false, "darwin"), { detached: true, windowsHide: true });
  assert.deepEqual(of(false, "win32"), { detached: false, windowsHide: true });
  for (const platform of ["linux", "darwin", "win32"]) {
    assert.deepEqual(of(true, platform), {
      detached: false,
      windowsHide: false,
    });
  }
});

test("On Windows the error of a program names scripts, which do not start", () => {
  const failed = (code: string) => Object.assign(new Error(), { code });
  assert.equal(
    notStarted(failed("ENOENT"), {}, "win32"),
    "is not installed, or is a script (.cmd, .bat), which runs in a shell only: received ENOENT",
  );
  assert.equal(
    notStarted(failed("EINVAL"), {}, "win32"),
    "cannot be executed, or is a script (.cmd, .bat), which runs in a shell only: received EINVAL",
  );
  assert.equal(
    notStarted(failed("ENOENT"), {}, "darwin"),
    "is not installed: received ENOENT",
  );
});

test("On Windows the home of a kubeconfig is that of kubectl", () => {
  const environment = {
    HOME: "C:\\git\\me",
    HOMEDRIVE: "H:",
    HOMEPATH: "\\me",
    USERPROFILE: "C:\\Users\\me",
  };
  const system = homeFolders({}, "linux");
  assert.equal(system.length, 1);
  assert.deepEqual(homeFolders(environment, "win32"), [
    "C:\\git\\me",
    "H:\\me",
    "C:\\Users\\me",
    ...system,
  ]);
  assert.deepEqual(homeFolders({ HOMEDRIVE: "C:" }, "win32"), system);
  assert.deepEqual(homeFolders(environment, "linux"), system);
});
