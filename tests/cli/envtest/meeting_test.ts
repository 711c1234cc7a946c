import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Caller, Meeting } from "../../../dev/cli/envtest/meeting.ts";
import { runCommand } from "../../support/child_process.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

/** Runs with a temporary folder of its own, in which the meeting folders are. */
async function withFolder(
  play: (
    parts: { readonly all: string; readonly temporary: string },
  ) => unknown,
): Promise<void> {
  const temporary = temporaryFolder();
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = temporary;
  try {
    const user = process.getuid?.() ?? 0;
    await play({ all: join(temporary, `coracle-envtest-${user}`), temporary });
  } finally {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  }
}

/** ID of a process that has ended. */
async function endedProcess(): Promise<number> {
  const { stdout } = await runCommand(["sh", "-c", "echo $$"]);
  return Number(stdout);
}

test("a meeting is a folder of its user, and starts empty", () =>
  withFolder(({ all }) => {
    const folder = join(all, "2379");
    const old = writeText(folder, "1.args", "old\0");
    const meeting = Meeting.open(2379);
    assert.equal(existsSync(old), false);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.equal(readFileSync(join(folder, "pid"), "utf8"), `${process.pid}\n`);
    assert.equal(meeting.nextCaller(), undefined);
    meeting.close();
    assert.equal(existsSync(folder), false);
    assert.equal(existsSync(all), true);
  }));

test("a meeting refuses a link to another folder", () =>
  withFolder(({ all }) => {
    symlinkSync(temporaryFolder(), all);
    assert.throws(
      () => Meeting.open(2379),
      /^Error: Cannot start etcd: .* must be a folder of user/,
    );
  }));

test("a meeting hands over each caller once, with its arguments", () =>
  withFolder(({ all }) => {
    const meeting = Meeting.open(1);
    writeText(join(all, "1"), "12.new", "--half");
    writeText(join(all, "1"), `${process.pid}.args`, "--a=b c\0\0--d\0");
    const caller = meeting.nextCaller();
    assert.deepEqual(caller?.args, ["--a=b c", "", "--d"]);
    assert.equal(caller?.isGone(), false);
    assert.equal(meeting.nextCaller(), undefined);
    meeting.close();
  }));

test("a caller reads lines from its pipe until it is closed", async () => {
  const folder = temporaryFolder();
  const pipe = join(folder, "1.log");
  await runCommand(["mkfifo", pipe]);
  const caller = new Caller({ process: process.pid, pipe, args: [] });
  caller.say("lost: nobody reads");
  const reading = runCommand(["cat", pipe]);
  await caller.answer();
  assert.equal(existsSync(pipe), false);
  caller.say("one");
  caller.say("two");
  caller.close();
  caller.say("lost: it is closed");
  caller.close();
  assert.equal((await reading).stdout, "one\ntwo\n");
});

test("a caller that has ended is not waited for", async () => {
  const pipe = join(temporaryFolder(), "1.log");
  const caller = new Caller({ process: await endedProcess(), pipe, args: [] });
  assert.equal(caller.isGone(), true);
  await assert.rejects(caller.answer(), /ENOENT/);
});
