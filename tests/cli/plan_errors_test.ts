import assert from "node:assert/strict";
import { existsSync, rmSync } from "node:fs";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import { Role, RoleBinding } from "@coracle/operator/kinds";
import { runCommandLine } from "../../dev/cli/main.ts";
import { planCommand } from "../../dev/cli/plan_command.ts";
import { planText } from "../../dev/cli/plan_text.ts";
import { snapshotCommand } from "../../dev/cli/snapshot_command.ts";
import {
  type Finding,
  findingsOf,
  type PlanReport,
} from "../../dev/testing/plan/plan_report.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { fixture } from "../testing/plan/cluster_copy.ts";
import { Site } from "../testing/plan/fixtures/site.ts";

const server = await ApiServer.start();
after(() => server.stop());
const folder = temporaryFolder();
const kubeconfig = writeText(folder, "config", server.kubeconfig);
await installCrd(server.client, Site);

const coracle = (...args: readonly string[]) => coracleAs(kubeconfig, ...args);

async function coracleAs(config: string, ...args: readonly string[]) {
  let out = "";
  let said = "";
  const code = await runCommandLine([...args, "--kubeconfig", config], {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  }, [planCommand, snapshotCommand]);
  return { code, out, said };
}

const plan = (...flags: readonly string[]) =>
  coracle("plan", fixture("site_old"), ...flags);

const snapshot = (...flags: readonly string[]) =>
  coracle("snapshot", "--output", `${folder}/snapshot`, ...flags);

test("coracle plan: exit code 0 if there is nothing to do", async () => {
  const { code, out } = await plan("--for", "2m");
  assert.equal(code, 0);
  assert.match(out, /^Nothing to do: /);
});

test("coracle plan --show says that no change is of what it names", () => {
  const change = { apiVersion: "v1", kind: "Pod", name: "a", cause: "apply" };
  const report = {
    ...{ changes: [{ ...change, action: "create", fields: [] }], events: [] },
    ...{ loops: [], fights: [], failures: [], fetches: [], missingRights: [] },
    ...{ answers: [], unread: [], notes: [] },
    cluster: { objects: 1, kinds: [] },
    simulated: { duration: 1, quiet: true },
  } as never as PlanReport;
  assert.match(
    planText(report, { show: ["nosuch"] }),
    /No change is of nosuch\./,
  );
  assert.doesNotMatch(planText(report, { show: ["Pod"] }), /No change is/);
});

test("coracle plan: a selector that is none fails, and is not nothing to do", async () => {
  const { code, out, said } = await plan("--selector", "tier in (");
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(said, /Cannot list sites\.plan\.coracle\.dev: .*requirement/);
});

test("coracle plan and snapshot refuse what is no name of a namespace", async () => {
  for (const name of ["No Such", "../secrets", "a".repeat(64)]) {
    const planned = await plan("--namespace", name);
    assert.equal(planned.code, 1);
    assert.match(planned.said, /^Cannot use --namespace: .*: received "/);
    assert.equal((await snapshot("--namespace", name)).code, 2);
  }
});

test("coracle plan and snapshot fail for a namespace that does not exist", async () => {
  const said = "Cannot read the namespace nosuch: the cluster has none of " +
    "this name\n";
  const planned = await plan("--namespace", "default,nosuch");
  assert.deepEqual(planned, { code: 1, out: "", said });
  assert.equal((await snapshot("--namespace", "nosuch")).said, said);
  assert.equal(existsSync(`${folder}/snapshot`), false);
});

test("coracle plan: a namespace that may not be read is named, if it exists or not", async () => {
  const { client } = server;
  const namespace = "default";
  await client.create(Role, {
    metadata: { namespace, name: "sites" },
    rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["list"] }],
  });
  await client.create(RoleBinding, {
    metadata: { namespace, name: "sites" },
    roleRef: {
      ...{ apiGroup: "rbac.authorization.k8s.io", kind: "Role" },
      name: "sites",
    },
    subjects: [{ kind: "User", name: "planner" }],
  });
  await client.create(Site, {
    metadata: { namespace, name: "only" },
    spec: { html: "<p>" },
  });
  const { out } = await coracleAs(
    writeText(folder, "planner", server.kubeconfigFor({ name: "planner" })),
    ...["plan", fixture("site_old"), "--namespace", "default,nosuch"],
  );
  await client.delete(Site, { namespace, name: "only" });
  assert.match(
    out,
    /namespaces: forbidden: the labels of default are not known/,
  );
  assert.match(
    out,
    /namespaces: forbidden: whether nosuch exists is not known/,
  );
});

test("coracle plan and snapshot say that a selector selects nothing", async () => {
  const flags = ["--namespace", "default", "--selector", "tier=nosuch"];
  const note =
    /The cluster has no Site in default with tier=nosuch: the operator has nothing to run for\./;
  const planned = await plan(...flags, "--for", "2m");
  assert.equal(planned.code, 0);
  assert.match(planned.out, note);
  const { said } = await snapshot(fixture("site_old"), ...flags);
  assert.match(said, note);
  rmSync(`${folder}/snapshot`);
});

test("coracle plan --from refuses the file that is planned", async () => {
  const { code, said } = await plan("--from", fixture("site_old"));
  assert.equal(code, 1);
  assert.match(said, /^Cannot use --from: .*: received the same file\n/);
});

test("coracle snapshot: a kind that the cluster does not serve leaves no file", async () => {
  const { code, said } = await snapshot("--kind", "Deployment,Gadget.acme.dev");
  assert.equal(code, 1);
  assert.equal(
    said,
    "Cannot read Gadget.acme.dev: the cluster does not serve this kind\n",
  );
  assert.equal(existsSync(`${folder}/snapshot`), false);
});

test("coracle snapshot: exit code 0 with a file, 2 for a wrong command line", async () => {
  assert.equal((await snapshot("--kind", "Site")).code, 0);
  assert.equal(existsSync(`${folder}/snapshot`), true);
  assert.equal((await snapshot("--limit", "5x")).code, 2);
});

test("coracle plan refuses a host that is none before it reads the cluster", async () => {
  for (const host of ["http://x", "a b", "x/y", "x:port"]) {
    const { code, said } = await plan("--allow-fetch", host);
    assert.equal(code, 1);
    assert.match(said, /^Cannot read --allow-fetch: .*: received /);
  }
});

test("coracle plan and snapshot refuse a folder that does not exist at once", async () => {
  const file = `${folder}/missing/plan.json`;
  const planned = await plan("--json", file, "--for", "a minute");
  assert.equal(planned.code, 1);
  assert.match(
    planned.said,
    /^Cannot write .*plan\.json: its folder must exist/,
  );
  const { code, said } = await coracle("snapshot", "--output", file);
  assert.equal(code, 2);
  assert.match(said, /^Cannot write .*plan\.json: its folder must exist/);
});

test("coracle plan: a server that does not answer fails within seconds", async () => {
  const port = await closedPort();
  const unreachable = writeText(
    folder,
    "unreachable",
    server.kubeconfig.replace(
      /server: .*/,
      `server: https://127.0.0.1:${port}`,
    ),
  );
  let said = "";
  const begun = performance.now();
  const code = await runCommandLine(
    ["plan", fixture("site_old"), "--kubeconfig", unreachable],
    {
      colors: false,
      out: () => {},
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    },
    [planCommand],
  );
  assert.equal(code, 1);
  assert.match(said, /^Cannot .*127\.0\.0\.1/);
  assert.ok(performance.now() - begun < 20_000, said);
});

test("coracle plan says that an operator would install its definition", async () => {
  const fresh = await ApiServer.start();
  try {
    const config = writeText(folder, "fresh", fresh.kubeconfig);
    let out = "";
    await runCommandLine(
      ["plan", fixture("site_definition"), "--kubeconfig", config],
      {
        colors: false,
        out: (text) => void (out += text),
        say: () => {},
        interrupts: () => new AbortController().signal,
      },
      [planCommand],
    );
    assert.match(
      out,
      /does not define Site: the operator installs the definition, which the plan supposes and does not list\./,
    );
  } finally {
    await fresh.stop();
  }
});

test("--fail-on: each finding is found by its part of a plan alone", () => {
  const change = {
    ...{ apiVersion: "v1", kind: "Pod", name: "a", cause: "apply" },
    fields: [],
  };
  const object = "Pod a";
  const taken = { path: ".a", takenFrom: ["kubectl"] };
  const parts: Record<Finding, Partial<PlanReport>> = {
    create: { changes: [{ ...change, action: "create" }] },
    change: { changes: [{ ...change, action: "change" }] },
    replace: { changes: [{ ...change, action: "replace" }] },
    delete: { changes: [{ ...change, action: "delete" }] },
    takeover: { changes: [{ ...change, action: "change", fields: [taken] }] },
    loop: { loops: [{ object, writes: 2, period: 1, fields: [] }] },
    fight: { fights: [{ object, manager: "kubectl", fields: [], answer: 1 }] },
    failure: { failures: [{ error: "no", count: 1, objects: [] }] },
    fetch: { fetches: [{ request: "GET /", count: 1, sent: false }] },
    rights: { missingRights: [{ verb: "get", group: "", resource: "pods" }] },
  };
  const resting = {
    changes: [],
    loops: [],
    fights: [],
    failures: [],
    fetches: [],
    missingRights: [],
  };
  for (const [finding, part] of Object.entries(parts)) {
    const found = findingsOf({ ...resting, ...part } as never as PlanReport);
    const expected = finding === "takeover" ? ["change", finding] : [finding];
    assert.deepEqual([...found], expected);
  }
});

/** Port on which nobody listens. */
async function closedPort(): Promise<number> {
  const { createServer } = await import("node:net");
  const listener = createServer();
  await new Promise<void>((resolve) =>
    listener.listen(0, "127.0.0.1", resolve)
  );
  const { port } = listener.address() as { readonly port: number };
  await new Promise<unknown>((resolve) => listener.close(resolve));
  return port;
}
