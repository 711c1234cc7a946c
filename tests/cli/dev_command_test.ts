import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { after, test } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { untyped } from "../../core/api/kind.ts";
import { Pod } from "../../core/kinds/core_v1.ts";
import { ClusterRole } from "../../core/kinds/rbac_v1.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { linkFileOf } from "../../dev/cli/serving.ts";
import { PROJECT } from "../support/child_process.ts";
import { coracle, Program, RUNTIME } from "../support/program.ts";
import { readRequests } from "../../dev/testing/request_record.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

const url = (path: string) => new URL(`../../${path}`, import.meta.url).href;
const GROUP = "batch.test.dev";

/** Operator file with a kind CronJob of its own, as its name and body say. */
function operatorFile(body: string): string {
  return writeText(
    projectFolder(),
    "op.mjs",
    `
import { defineKind, Operator } from "${url("mod.ts")}";
import { z } from "${url("node_modules/zod/index.js")}";
const names = { group: "${GROUP}", version: "v1", spec: z.object({}) };
const CronJob = defineKind({ ...names, kind: "CronJob" });
const Part = defineKind({ ...names, kind: "Part" });
function make(options = {}) {
  const operator = new Operator(options);
  const reconcile = (job, ctx) => ctx.log.debug("one");
  operator.register(CronJob, { reconcile }, { owns: [Part] });
  return operator;
}
${body}
`,
  );
}

/** Folder of an operator, in a project that has the dependencies. */
function projectFolder(): string {
  if (RUNTIME !== "deno") return temporaryFolder();
  const cache = join(PROJECT, ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "operator-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder for temporary files, the kubeconfig and what the command leaves. */
function places() {
  const folder = temporaryFolder();
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  return {
    folder,
    kubeconfig,
    /** Nothing of the command is left. */
    isEmpty: () =>
      !existsSync(kubeconfig) && !existsSync(linkFileOf(kubeconfig)) &&
      readdirSync(folder).filter((name) => name.startsWith("coracle-"))
          .length === 0,
  };
}

async function createJob(kubeconfig: string, name: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const kind = untyped({ group: GROUP, version: "v1", kind: "CronJob" });
  await client.create(kind, {
    metadata: { name, namespace: "default" },
    spec: {},
  });
  await client.close();
}

async function deleteJob(kubeconfig: string, name: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const kind = untyped({ group: GROUP, version: "v1", kind: "CronJob" });
  await client.delete(kind, { name, namespace: "default" });
  await client.close();
}

const FORMS = {
  "awaits run()": "await make().run();",
  "does not await run()": "void make().run();",
  "exports a function": "export const operator = make;",
  "runs only as the main module": "if (import.meta.main) await make().run();",
};

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

test("coracle dev shows runs to its page and coracle why, and takes requests", async () => {
  const { folder, kubeconfig } = places();
  const file = operatorFile("export const operator = make;");
  const dev = new Program(
    coracle("dev", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    const [, url, token = ""] = await dev.says(
      /In a browser: (http:\S+)\/#(\w+)/,
    );
    const ask = async (path: string, body?: unknown) => {
      const response = await fetch(url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { "x-coracle-token": token },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      assert.equal(response.status, 200);
      return await response.json();
    };
    await createJob(kubeconfig, "a");
    await dev.says(/cronjob default\/a .*Reconciled/);
    const { dev: isDev, operators } = await ask("/api/state");
    assert.equal(isDev, true);
    assert.equal(operators[0].controllers[0].objects[0].object, "default/a");
    assert.equal(operators[0].state, "started");
    const of = { controller: "cronjob", object: "default/a" };
    await ask("/api/act", { action: "fault", fault: "watches" });
    await ask("/api/act", { action: "reconcile", ...of });
    await dev.says(/default\/a .*Reconciled {2}\(requested/);
    const { histories, logs } = await ask("/api/object?object=default/a");
    assert.equal(histories[0].runs.at(-1).cause, "requested");
    assert.match(logs.join("\n"), /default\/a {2}debug: one/);
    const asked = new Program(coracle("why", "default/a"), {
      env: { KUBECONFIG: kubeconfig },
    });
    await asked.says(/^cronjob default\/a\n[^]*because {2}requested/);
    await asked.ended();
    await ask("/api/act", { action: "pause", ...of });
    const client = new Client(await loadConfig({ kubeconfig }));
    const kind = untyped({ group: GROUP, version: "v1", kind: "CronJob" });
    const key = { name: "a", namespace: "default" };
    const { metadata } = await client.get(kind, key);
    assert.equal(metadata.annotations?.["coracle.dev/paused"], "true");
    await ask("/api/act", { action: "resume", ...of });
    const resumed = (await client.get(kind, key)).metadata.annotations ?? {};
    assert(!("coracle.dev/paused" in resumed));
    await client.close();
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await dev.kill();
  }
});

test("coracle dev --crd installs definitions of others", async () => {
  const { folder, kubeconfig } = places();
  const file = operatorFile(
    `const kind = { group: "${GROUP}", version: "v1", kind: "CronJob" };
export const operator = new Operator();
operator.register(kind, { reconcile() {} });`,
  );
  // The name of samples, which are proposed for kubectl.
  const crd = writeText(
    dirname(file),
    basename(file).replace(/\.\w+$/, ".yaml"),
    `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: cronjobs.${GROUP} }
spec:
  group: ${GROUP}
  scope: Namespaced
  names: { kind: CronJob, plural: cronjobs, singular: cronjob, listKind: CronJobList }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: { type: object, properties: { spec: { type: object } } }
`,
  );
  const without = new Program(
    coracle("dev", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    assert.equal(await without.ended(), 1, without.describe());
    await without.says(
      new RegExp(`Others define ${GROUP}/v1 CronJob: coracle dev --crd FILE`),
    );
  } finally {
    await without.kill();
  }
  const dev = new Program(
    coracle("dev", "--kubeconfig", kubeconfig, "--crd", crd, file),
    { env: { TMPDIR: folder } },
  );
  try {
    const [greeting] = await dev.says(/is running[^]*Ctrl-C/);
    assert.doesNotMatch(greeting, /kubectl apply/);
    await createJob(kubeconfig, "a");
    await dev.says(/cronjob default\/a .*Reconciled/);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await dev.kill();
  }
});

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

test("coracle dev serves probes on another port if theirs is in use", async () => {
  const { folder } = places();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const options = `{ probes: { port: ${port}, host: "127.0.0.1" } }`;
  const file = operatorFile(`export default make(${options});`);
  // A sample of this name is proposed for kubectl.
  writeText(dirname(file), "op.yaml", "kind: CronJob\n");
  const dev = new Program(coracle("dev", file), { env: { TMPDIR: folder } });
  try {
    const [, url] = await dev.says(/in use: .* url=(http:\S+)/);
    await dev.says(/The operator of .* is running/);
    const [greeting] = await dev.says(/In a second terminal:[^]*Ctrl-C/);
    assert.match(greeting, /\n {2}kubectl apply -f \S+op\.yaml\n/);
    assert.doesNotMatch(greeting, /kubectl explain/);
    const response = await fetch(`${url}/readyz`);
    assert.equal((await response.json()).ready, true);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await dev.kill();
    server.close();
  }
});

test("coracle dev --apply creates the objects of a folder and of a file", async () => {
  const { folder, kubeconfig } = places();
  const header = `apiVersion: ${GROUP}/v1\nkind: CronJob\nmetadata:\n`;
  writeText(
    folder,
    "examples/a.yaml",
    `${header}  name: one\nspec: {}\n---\n${header}  name: two\n  namespace: kube-system\nspec: {}\n`,
  );
  const more = writeText(
    folder,
    "b.yml",
    `${header}  name: three\nspec: {}
---
apiVersion: v1
kind: Pod
metadata: { name: web }
spec: { containers: [{ name: web, image: web }] }
`,
  );
  const data = join(folder, "data");
  const flags = ["--kubeconfig", kubeconfig, "--apply", `${folder}/examples`];
  flags.push("--apply", more);
  flags.push("--data", data);
  const file = operatorFile("export const operator = make;");
  // A sample that is not to be applied as well.
  writeText(dirname(file), "op.yaml", "kind: CronJob\n");
  const dev = new Program(coracle("dev", ...flags, file), {
    env: { TMPDIR: folder },
  });
  try {
    for (const name of ["default/one", "kube-system/two", "default/three"]) {
      await dev.says(new RegExp(`${name}  Reconciled`));
    }
    const [greeting] = await dev.says(/In a second terminal:[^]*Ctrl-C/);
    assert.doesNotMatch(greeting, /kubectl apply/);
    const client = new Client(await loadConfig({ kubeconfig }));
    const key = { name: "web", namespace: "default" };
    await until("the pod runs", async () => {
      const { status } = await client.get(Pod, key);
      return status?.phase === "Running";
    });
    await client.close();
    assert.equal(await dev.end("SIGINT"), 0, dev.describe());
    assert.match(readFileSync(data, "utf8"), /"three"/);
  } finally {
    await dev.kill();
  }
});

test("coracle dev --apply refuses a file without objects", async () => {
  const { folder } = places();
  const file = writeText(folder, "a.yaml", "a: 1\n");
  const dev = new Program(
    coracle("dev", "--apply", file, operatorFile("await make().run();")),
  );
  await dev.says(/Cannot apply .*a\.yaml: an object must have apiVersion/);
  assert.equal(await dev.ended(), 2);
});

test("coracle dev refuses wrong flags before it starts anything", async () => {
  const folder = temporaryFolder();
  const file = operatorFile("await make().run();");
  const other = writeText(folder, "other", "{}\n");
  for (
    const [args, message] of [
      [[join(folder, "none.ts")], /^Cannot load .*none\.ts: there is no such/],
      [["--port", "http", file], /^Cannot use --port/],
      [["--crd", join(folder, "none.yaml"), file], /^Cannot read .*none\.yaml/],
      [["--recorded", other, file], /^Cannot read .*other: line 1 is not a/],
    ] as const
  ) {
    let said = "";
    const code = await runCommandLine(["dev", ...args], {
      colors: false,
      out: () => assert.fail("It prints a result"),
      say: (text) => void (said += text),
      interrupts: () => assert.fail("It runs"),
    });
    assert.equal(code, 2, said);
    assert.match(said, message);
  }
});

test("coracle dev that cannot serve keeps a kubeconfig of the same name", async () => {
  const { folder, kubeconfig } = places();
  writeText(dirname(kubeconfig), basename(kubeconfig), "of another");
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const dev = new Program(
    coracle(
      ...["dev", "--port", `${port}`, "--kubeconfig", kubeconfig],
      operatorFile("await make().run();"),
    ),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(new RegExp(`port ${port}: another process listens there`));
    assert.equal(await dev.ended(), 1, dev.describe());
    assert.equal(readFileSync(kubeconfig, "utf8"), "of another");
  } finally {
    await dev.kill();
    server.close();
  }
});

test("coracle dev prepares the server for all operators of a file", async () => {
  const { folder, kubeconfig } = places();
  const file = operatorFile(`
import { watch } from "${url("mod.ts")}";
const Seen = defineKind({ ...names, kind: "Seen" });
const other = new Operator();
const sources = [watch(Seen, { readOnly: true, references: () => [] })];
other.register(Part, { reconcile() {} }, { sources });
make();
`);
  const dev = new Program(coracle("dev", "--kubeconfig", kubeconfig, file), {
    env: { TMPDIR: folder },
  });
  try {
    await dev.says(/Press Ctrl-C/);
    const client = new Client(await loadConfig({ kubeconfig }));
    await until("the role is that of both operators", async () => {
      const { rules = [] } = await client.get(ClusterRole, { name: "op" });
      const granted = rules.flatMap(({ resources = [] }) => resources);
      return ["cronjobs", "parts", "seens"].every((one) =>
        granted.includes(one)
      );
    });
    await client.close();
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await dev.kill();
  }
});

for (
  const [name, form] of [
    ["nope", "awaits run()"],
    ["nope", "runs only as the main module"],
    ["make", "exports a function"],
  ] as const
) {
  test(`coracle dev refuses --export ${name} of a file that ${form}`, async () => {
    const file = operatorFile(`${FORMS[form]}\nexport const anything = make;`);
    const dev = new Program(coracle("dev", "--export", name, file));
    try {
      await dev.says(
        /--export must name an Operator .*: received \w+, of exports \w+/,
      );
      assert.equal(await dev.ended(), 2, dev.describe());
    } finally {
      await dev.kill();
    }
  });
}

test("coracle dev --export of a value says what the value is", async () => {
  const file = operatorFile("export const operator = make, Site = {};");
  const dev = new Program(coracle("dev", "--export", "Site", file));
  try {
    await dev.says(
      /--export must name an Operator .*: received Site, an object\n/,
    );
    assert.equal(await dev.ended(), 2, dev.describe());
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

test("coracle dev removes the files of one that was killed, but of none that runs", async () => {
  const { folder } = places();
  const file = operatorFile("export const operator = make;");
  const dev = async () => {
    const env = { TMPDIR: folder };
    const program = new Program(coracle("dev", file), { env });
    const [, path = ""] = await program.says(/export KUBECONFIG=(\S+)/);
    return { program, path };
  };
  const killed = await dev();
  await killed.program.end("SIGKILL");
  assert.ok(existsSync(killed.path));
  const first = await dev();
  assert.ok(!existsSync(dirname(killed.path)));
  const second = await dev();
  assert.ok(existsSync(first.path));
  for (const { program } of [first, second]) {
    assert.equal(await program.end("SIGTERM"), 0, program.describe());
  }
});

test("coracle dev --watch restarts a file, also after an error in it", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  // A timer of the file, or a socket, must not keep it from being started.
  const made = operatorFile(
    "setInterval(() => {}, 9_000);\nexport const operator = make;",
  );
  const file = writeText(dirname(made), "op.ts", readFileSync(made, "utf8"));
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/);
    await createJob(kubeconfig, "a");
    await dev.says(/default\/a .*debug: one/);
    const text = readFileSync(file, "utf8").replace('"one"', '"two"');
    const write = (text: string) =>
      writeText(dirname(file), basename(file), text);
    write(`${text}\nconst three = ;\n`);
    await dev.says(/Unexpected|expected/i);
    assert.match(dev.output, /op\.ts:\d+/);
    write(text);
    await dev.says(/default\/a .*debug: two/);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.equal(dev.output.match(/Press Ctrl-C/g)?.length, 1);
    assert.ok(isEmpty());
  } finally {
    await dev.kill();
  }
});

test("coracle dev --watch follows a file that an editor replaces by another", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  const made = operatorFile("export const operator = make;");
  const text = readFileSync(made, "utf8");
  const file = writeText(dirname(made), "replaced.mjs", text);
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/);
    await createJob(kubeconfig, "a");
    await dev.says(/default\/a .*debug: one/);
    for (const word of ["two", "three"]) {
      const draft = text.replace('"one"', `"${word}"`);
      renameSync(writeText(dirname(made), `${word}.txt`, draft), file);
      await dev.says(new RegExp(`default/a .*debug: ${word}`));
    }
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.ok(isEmpty());
  } finally {
    await dev.kill();
  }
});

test("coracle dev reports a missing right with its rule, unless it runs as admin", async () => {
  const file = operatorFile(`
// Nobody has created the second namespace.
const operator = new Operator({ namespaces: ["default", "team-a"] });
operator.register(CronJob, {
  async reconcile(job, ctx) {
    const kind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" };
    const metadata = { namespace: "default", name: job.metadata.name };
    await ctx.client.create(kind, { metadata });
  },
}, { retry: false });
await operator.run();
`);
  const { kubeconfig, folder } = places();
  const record = join(folder, "requests");
  for (
    const [flag, says] of [
      // A record is to show all that the operator asks for.
      [`--record=${record}`, /cronjob default\/a .*Reconciled/],
      [`--recorded=${record}`, /cronjob default\/a .*Reconciled/],
      [
        "--debug",
        /may not create configmaps in namespace default.*\n\n {2}- apiGroups: \[""\]\n {4}resources: \["configmaps"\]\n {4}verbs: \["create"\]/,
      ],
      ["--admin", /cronjob default\/a .*Reconciled/],
      ["--manages=ConfigMap", /cronjob default\/a .*Reconciled/],
    ] as const
  ) {
    const dev = new Program(
      coracle("dev", "--kubeconfig", kubeconfig, flag, file),
      { env: { TMPDIR: folder } },
    );
    try {
      await dev.says(/Press Ctrl-C/);
      assert.equal(statSync(kubeconfig).mode & 0o777, 0o600);
      await createJob(kubeconfig, "a");
      await dev.says(says);
      assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    } finally {
      await dev.kill();
    }
  }
});

test("coracle dev gives a function a client with the rights of the operator", async () => {
  const { kubeconfig, folder } = places();
  const file = operatorFile(`
export function operator(options) {
  const operator = new Operator(options);
  const workflow = {
    needsFinalizer: false,
    explicit: true,
    sources: [],
    reconcile() {},
    cleanup() {},
    resultIn() {},
    toMermaid: () => "graph TD\\n  one --> two\\n",
  };
  operator.register(CronJob, {
    async reconcile(job, { client }) {
      const kind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" };
      const metadata = { namespace: "default", name: job.metadata.name };
      await client.create(kind, { metadata });
    },
  }, { retry: false, workflow });
  return operator;
}
`);
  const dev = new Program(coracle("dev", "--kubeconfig", kubeconfig, file), {
    env: { TMPDIR: folder },
  });
  try {
    await dev.says(
      /\nThe workflow of cronjob as a Mermaid diagram:\n\n {2}graph TD\n {4}one --> two\n[^]*Ctrl-C/,
    );
    await createJob(kubeconfig, "a");
    await dev.says(/may not create configmaps in namespace default/);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await dev.kill();
  }
});
