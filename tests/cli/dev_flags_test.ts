import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { Client, loadConfig } from "@coracle/operator/client";
import { ClusterRole, Pod } from "@coracle/operator/kinds";
import { runCommandLine } from "../../dev/cli/main.ts";
import { CommandRun } from "../support/command_run.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";
import {
  createJob,
  FORMS,
  GROUP,
  operatorFile,
  places,
  url,
} from "../support/dev_operator_file.ts";

test("coracle dev --crd installs definitions of others", async () => {
  const { folder, kubeconfig } = places();
  const body =
    `const kind = { group: "${GROUP}", version: "v1", kind: "CronJob" };
export const operator = new Operator();
operator.register(kind, { reconcile() {} });`;
  const file = operatorFile(body);
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
  const without = new CommandRun(
    ["dev", "--kubeconfig", kubeconfig, operatorFile(body)],
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
  const dev = new CommandRun([
    "dev",
    "--kubeconfig",
    kubeconfig,
    "--crd",
    crd,
    file,
  ], { env: { TMPDIR: folder } });
  try {
    const [greeting] = await dev.says(/is running[^]*Ctrl-C/);
    assert.doesNotMatch(greeting, /kubectl apply/);
    await createJob(kubeconfig, "a");
    await dev.says(/cronjob default\/a .*Reconciled/);
    assert.equal(await dev.end(), 0, dev.describe());
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
  const dev = new CommandRun(["dev", file], { env: { TMPDIR: folder } });
  try {
    const [, url] = await dev.says(/in use: .* url=(http:\S+)/);
    await dev.says(/The operator of .* is running/);
    const [greeting] = await dev.says(/In a second terminal:[^]*Ctrl-C/);
    assert.match(greeting, /\n {2}kubectl apply -f \S+op\.yaml\n/);
    assert.doesNotMatch(greeting, /kubectl explain/);
    const response = await fetch(`${url}/readyz`);
    assert.equal((await response.json()).ready, true);
    assert.equal(await dev.end(), 0, dev.describe());
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
  const dev = new CommandRun(["dev", ...flags, file], {
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
    assert.equal(await dev.end(), 0, dev.describe());
    assert.match(readFileSync(data, "utf8"), /"three"/);
  } finally {
    await dev.kill();
  }
});

test("coracle dev --apply refuses a file without objects", async () => {
  const { folder } = places();
  const file = writeText(folder, "a.yaml", "a: 1\n");
  const operator = operatorFile("await make().run();");
  const dev = new CommandRun(["dev", "--apply", file, operator]);
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
  const file = operatorFile("await make().run();");
  const dev = new CommandRun(
    ["dev", "--port", `${port}`, "--kubeconfig", kubeconfig, file],
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
  const dev = new CommandRun(["dev", "--kubeconfig", kubeconfig, file], {
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
    assert.equal(await dev.end(), 0, dev.describe());
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
    const dev = new CommandRun(["dev", "--export", name, file]);
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
  const dev = new CommandRun(["dev", "--export", "Site", file]);
  try {
    await dev.says(
      /--export must name an Operator .*: received Site, an object\n/,
    );
    assert.equal(await dev.ended(), 2, dev.describe());
  } finally {
    await dev.kill();
  }
});

test("coracle dev reports a missing right with its rule, unless it runs as admin", async () => {
  const body = `
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
`;
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
    const dev = new CommandRun(
      ["dev", "--kubeconfig", kubeconfig, flag, operatorFile(body)],
      { env: { TMPDIR: folder } },
    );
    try {
      await dev.says(/Press Ctrl-C/);
      assert.equal(statSync(kubeconfig).mode & 0o777, 0o600);
      await createJob(kubeconfig, "a");
      await dev.says(says);
      assert.equal(await dev.end(), 0, dev.describe());
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
  const dev = new CommandRun(["dev", "--kubeconfig", kubeconfig, file], {
    env: { TMPDIR: folder },
  });
  try {
    await dev.says(
      /\nThe workflow of cronjob as a Mermaid diagram:\n\n {2}graph TD\n {4}one --> two\n[^]*Ctrl-C/,
    );
    await createJob(kubeconfig, "a");
    await dev.says(/may not create configmaps in namespace default/);
    assert.equal(await dev.end(), 0, dev.describe());
  } finally {
    await dev.kill();
  }
});
