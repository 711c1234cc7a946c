import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { killGroup, startCommand } from "../support/child_process.ts";
import { until } from "../support/until.ts";

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`A soak that ${signal} ends leaves no server behind`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "killed-"));
    const soak = startCommand(["node", "tests/soak/soak.ts", "--objects=1"], {
      env: { TMPDIR: folder },
    });
    try {
      let output = "";
      soak.stderr?.setEncoding("utf8").on("data", (text) => output += text);
      await until("it soaks", () => output.includes("Soaking"), {
        within: 60_000,
      });
      soak.kill(signal);
      await until("its process group is empty", () => !hasProcesses(soak.pid), {
        within: 60_000,
      });
      const left = await readdir(folder);
      if (signal === "SIGTERM") assert.deepEqual(left, []);
    } finally {
      killGroup(soak);
      await rm(folder, { recursive: true });
    }
  });
}

/** Whether the process group that a process leads has any process. */
function hasProcesses(leader: number | undefined): boolean {
  try {
    return process.kill(-Number(leader), 0);
  } catch {
    return false;
  }
}
