import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { startCheckWorkers } from "../../dev/cli/check_workers.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const JOB = {
  do: "reference",
  scenario: { name: "life", steps: [], known: 0 },
} as const;

/** Workers of an operator file that notes its process, and fails. */
async function workersOf(count: number, failure: string) {
  const folder = temporaryFolder();
  const pids = join(folder, "pids");
  const operator = writeText(
    folder,
    "op.mjs",
    `import { appendFileSync } from "node:fs";
appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n");
process.stdout.write("loading ");
process.stderr.write("out of oil\\n");
${failure}
`,
  );
  const workers = await startCheckWorkers(count, {
    operator,
    seed: 1,
    simulate: false,
  });
  return {
    workers,
    folder,
    pids: () =>
      existsSync(pids)
        ? readFileSync(pids, "utf8").trim().split("\n").map(Number)
        : [],
  };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("Check workers start on demand, are used again, and end at close", async () => {
  const { workers, pids } = await workersOf(2, "throw new Error('broken');");
  try {
    assert.equal(workers.size, 2);
    // The trace of an unexpected error tells where it was thrown.
    await assert.rejects(workers.run(JOB), /broken[^]*\n +at .*op\.mjs/);
    await assert.rejects(workers.run(JOB), /broken/);
    assert.equal(pids().length, 1);
    await Promise.allSettled([workers.run(JOB), workers.run(JOB)]);
    await assert.rejects(workers.run(JOB), /broken/);
    assert.equal(pids().length, 2);
  } finally {
    await workers.close();
  }
  assert.deepEqual(pids().filter(isAlive), []);
});

test("Check workers name the file and place of an error that explains itself", async () => {
  const { workers } = await workersOf(1, "throw new Error('Cannot start: x');");
  try {
    await assert.rejects(
      workers.run(JOB),
      /^Error: Cannot load \S*op\.mjs: Cannot start: x\n +at \S*op\.mjs:5:\d+$/,
    );
  } finally {
    await workers.close();
  }
});

test("Check workers replace a process that has ended, and name what it wrote", async () => {
  const { workers, pids } = await workersOf(1, "process.exit(7);");
  try {
    for (let run = 1; run <= 2; run++) {
      await assert.rejects(
        workers.run(JOB),
        /ended \(exit code 7\), having written:\n[^]*out of oil\n$/,
      );
      assert.equal(pids().length, run);
    }
  } finally {
    await workers.close();
  }
});

test("Check workers replace a process after 400 jobs", async () => {
  const { workers, pids } = await workersOf(1, "throw new Error('broken');");
  try {
    const run = () => workers.run(JOB).catch(() => {});
    for (let job = 0; job < 400; job++) await run();
    assert.equal(pids().length, 1);
    await run();
    const [first = 0, second = 0] = pids();
    assert.deepEqual([isAlive(first), isAlive(second)], [false, true]);
  } finally {
    await workers.close();
  }
});
