import assert from "node:assert/strict";
import { readFileSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { untyped } from "../../core/api/kind.ts";
import type { UntypedObject } from "@coracle/operator/client";
import { coracle, Program } from "../support/program.ts";
import { readRequests } from "../../dev/testing/request_record.ts";
import { writeText } from "../support/temporary_folder.ts";
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

test("coracle dev --watch that is ended twice leaves no process", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  // It goes on after the first signal, until its watcher is gone.
  const file = operatorFile(`
    process.on("SIGTERM", () => console.log("told"));
    const { ppid } = process;
    export function operator(options) {
      setInterval(() => process.ppid === ppid || process.exit(), 50);
      const operator = new Operator(options);
      const reconcile = () => {
        console.log("begun");
        return new Promise(() => {});
      };
      operator.register(CronJob, { reconcile });
      return operator;
    }
  `);
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/);
    await createJob(kubeconfig, "a");
    // Without a run in progress the first signal ends it.
    await dev.says(/begun/);
    process.kill(dev.pid, "SIGTERM");
    await dev.says(/told/);
    // A process that is left would keep the output open.
    assert.equal(await dev.end("SIGTERM"), 130, dev.describe());
    assert.ok(isEmpty());
  } finally {
    await dev.kill();
  }
});

test("coracle dev --watch that is killed leaves no process", async () => {
  const { folder, kubeconfig } = places();
  const file = operatorFile("export const operator = make;");
  const dev = new Program(
    coracle("dev", "--watch", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/);
    // A process that is left would keep the output open.
    await dev.end("SIGKILL");
  } finally {
    await dev.kill();
  }
});

/** A kind that its operator validates, defaults and converts. */
const LAMPS = `
const Lamp = defineKind({
  group: names.group,
  version: "v2",
  kind: "Lamp",
  spec: z.object({ note: z.string().optional(), power: z.string() }),
  versions: [{
    name: "v1",
    spec: z.object({ note: z.string().optional(), watts: z.int() }),
    up: ({ spec: { watts, ...rest } }) => ({
      spec: { ...rest, power: watts + " W" },
    }),
    down: ({ spec: { power, ...rest } }) => ({
      spec: { ...rest, watts: parseInt(power) },
    }),
  }],
});
export const operator = () => {
  const operator = make();
  operator.register(Lamp, { reconcile() {} }, {
    admission: {
      failurePolicy: "Fail",
      default(lamp) {
        lamp.spec.note ??= "one";
        return lamp;
      },
      validate: ({ spec }) => spec.power === "none" ? deny("one") : undefined,
    },
  });
  return operator;
};`;

/** Waits until objects are denied, defaulted and converted with a word. */
async function admitsWith(word: string, client: Client): Promise<void> {
  const specOf = async (version: string, spec: object) => {
    const kind = untyped({ group: GROUP, version, kind: "Lamp" });
    const metadata = { name: "a", namespace: "default" };
    const object = { metadata, spec } as UntypedObject;
    const made = await client.create(kind, object, { dryRun: true });
    return (made as UntypedObject).spec;
  };
  let why: unknown;
  await until(`lamps are admitted with "${word}"`, async () => {
    try {
      const made = await specOf("v2", { power: "1 W" });
      assert.deepEqual(made, { power: "1 W", note: word });
      const denied = new RegExp(`denied the request: ${word}`);
      await assert.rejects(specOf("v2", { power: "none" }), denied);
      // Converted for the handlers, and back.
      const old = await specOf("v1", { watts: 9 });
      assert.deepEqual(old, { watts: 9, note: word });
      return true;
    } catch (error) {
      why = error; // The operator of before answers, or none.
      return false;
    }
  }, { within: 20_000 }).catch(() => {
    throw why;
  });
}

test("coracle dev --watch follows a file that is written, broken and replaced", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  // A timer of the file, or a socket, must not keep it from being started.
  const made = operatorFile(`setInterval(() => {}, 9_000);\n${LAMPS}`);
  const file = writeText(dirname(made), "op.ts", readFileSync(made, "utf8"));
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/);
    await createJob(kubeconfig, "a");
    await dev.says(/default\/a .*debug: one/);
    client = new Client(await loadConfig({ kubeconfig }));
    await admitsWith("one", client);
    const text = readFileSync(file, "utf8").replaceAll('"one"', '"two"');
    const write = (text: string) =>
      writeText(dirname(file), basename(file), text);
    write(`${text}\nconst three = ;\n`);
    await dev.says(/Unexpected|expected/i);
    assert.match(dev.output, /op\.ts:\d+/);
    write(text);
    await dev.says(/default\/a .*debug: two/);
    await admitsWith("two", client);
    // The operator has the rights that it needs, and owns its definition.
    assert.doesNotMatch(dev.output, /may not|warn:|Others define/);
    // As an editor does that writes another file first.
    for (const word of ["three", "four"]) {
      const draft = text.replaceAll('"two"', `"${word}"`);
      renameSync(writeText(dirname(file), `${word}.txt`, draft), file);
      await dev.says(new RegExp(`default/a .*debug: ${word}`));
    }
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.equal(dev.output.match(/Press Ctrl-C/g)?.length, 1);
    assert.ok(isEmpty());
  } finally {
    await client?.close();
    await dev.kill();
  }
});
