import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { untyped } from "../../core/api/kind.ts";
import { coracle, Program } from "../support/program.ts";
import { readRequests } from "../../dev/testing/request_record.ts";
import { until } from "../support/until.ts";
import {
  createJob,
  FORMS,
  GROUP,
  operatorFile,
  places,
} from "../support/dev_operator_file.ts";

async function deleteJob(kubeconfig: string, name: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const kind = untyped({ group: GROUP, version: "v1", kind: "CronJob" });
  await client.delete(kind, { name, namespace: "default" });
  await client.close();
}

/** Signals of a user, a cluster and a terminal that is closed. */
const ENDS = ["SIGTERM", "SIGHUP", "SIGINT", "SIGINT"] as const;

for (const [at, [form, body]] of Object.entries(FORMS).entries()) {
  test(`coracle dev runs a file that ${form}, and leaves nothing`, async () => {
    const { folder, kubeconfig, isEmpty } = places();
    const record = join(folder, "requests");
    const dev = new Program(
      coracle(
        "dev",
        "--debug",
        "--kubeconfig",
        kubeconfig,
        "--record",
        record,
        operatorFile(body),
      ),
      { env: { TMPDIR: folder } },
    );
    try {
      // Its definition is installed, and a built-in kind has the plural.
      await dev.says(
        /kubectl explain cronjobs --api-version=batch\.test\.dev\/v1/,
      );
      await dev.says(/kubectl get cronjobs\.batch\.test\.dev --watch/);
      await createJob(kubeconfig, "a");
      await dev.says(/cronjob default\/a .*debug: one/);
      await dev.says(/cronjob default\/a .*Reconciled/);
      await deleteJob(kubeconfig, "a");
      await dev.says(/cronjob default\/a {2}Deleted/);
      // A program that is not asked to end is killed after 12 seconds.
      assert.equal(await dev.end(ENDS[at], 10_000), 0, dev.describe());
      await dev.says(/Operator stopped/);
      assert.ok(isEmpty());
      const seen = readRequests(record);
      const event = { verb: "watch", group: GROUP, resource: "cronjobs" };
      assert.ok(
        seen.some((one) =>
          one.verb === event.verb && one.resource === event.resource
        ),
      );
      // A role cannot be in a namespace without a name.
      assert.ok(seen.every(({ namespace }) => namespace !== ""));
      // Those of others are not what the operator needs rights for.
      assert.ok(seen.every(({ verb }) => verb !== "create"));
    } finally {
      await dev.kill();
    }
  });
}

/** Options of an operator that cannot start: no machine has this address. */
const UNUSABLE = "{ probes: { port: 0, host: '192.0.2.1' } }";
const FAILURES = {
  "rejects a run that is not awaited": `void make(${UNUSABLE}).run();`,
  "throws while it is loaded": "throw new Error('broken');",
  "cannot start": `export default make(${UNUSABLE});`,
  "exits by itself":
    "setTimeout(() => process.exit(1), 50); await new Promise(() => {});",
};

for (const [what, body] of Object.entries(FAILURES)) {
  test(`coracle dev leaves nothing if the file ${what}`, async () => {
    const { folder, kubeconfig, isEmpty } = places();
    const dev = new Program(
      coracle("dev", "--kubeconfig", kubeconfig, operatorFile(body)),
      { env: { TMPDIR: folder } },
    );
    try {
      assert.equal(await dev.ended(), 1, dev.describe());
      assert.ok(isEmpty());
    } finally {
      await dev.kill();
    }
  });
}

for (
  const [how, end, expected] of [
    ["exits", "process.exit(3)", 3],
    ["is killed", "process.kill(process.pid, 'SIGKILL')", 1],
  ] as const
) {
  test(`coracle dev ends as a program that ${how}, and leaves nothing`, async () => {
    const { folder, kubeconfig, isEmpty } = places();
    const body = `if (import.meta.main) {
  setTimeout(() => ${end}, 50);
  await new Promise(() => {});
}`;
    const dev = new Program(
      coracle("dev", "--kubeconfig", kubeconfig, operatorFile(body)),
      { env: { TMPDIR: folder } },
    );
    try {
      assert.equal(await dev.ended(), expected, dev.describe());
      assert.ok(isEmpty());
    } finally {
      await dev.kill();
    }
  });
}

test("coracle dev that is interrupted during a start ends without an error", async () => {
  const { folder, isEmpty } = places();
  const body = `const running = make({}).run();
process.kill(process.pid, "SIGINT");
await running;`;
  const dev = new Program(
    coracle("dev", operatorFile(body)),
    { env: { TMPDIR: folder } },
  );
  try {
    assert.equal(await dev.ended(), 0, dev.describe());
    assert.doesNotMatch(dev.describe(), /Cannot run|Warning/);
    assert.ok(isEmpty());
  } finally {
    await dev.kill();
  }
});

test("coracle dev ends and leaves nothing when nobody reads its output", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  const file = operatorFile(
    "export const operator = make; setInterval(() => process.stderr.write('tick\\n'), 10);",
  );
  const command = coracle("dev", "--kubeconfig", kubeconfig, file)
    .map((word) => `'${word}'`).join(" ");
  const dev = new Program(["sh", "-c", `${command} 2>&1 | head -1`], {
    env: { TMPDIR: folder },
  });
  try {
    await dev.ended();
    await until("nothing is left", isEmpty, { within: 20_000 });
  } finally {
    await dev.kill();
  }
});
