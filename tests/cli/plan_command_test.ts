import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { after, test } from "node:test";
import { ConfigMap, Secret, Service } from "@coracle/operator/kinds";
import { TestCluster } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import { runCommandLine } from "../../dev/cli/main.ts";
import { planCommand } from "../../dev/cli/plan_command.ts";
import { snapshotCommand } from "../../dev/cli/snapshot_command.ts";
import { readSnapshot } from "../../dev/testing/plan/snapshot_file.ts";
import { assertDocumented } from "../support/documented_json.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { Site } from "../testing/plan/fixtures/site.ts";
import { fixture } from "../testing/plan/cluster_copy.ts";

const writes: string[] = [];
const server = await ApiServer.start({
  audit: ({ verb, resource }) => {
    if (!/^(?:get|list|watch)$/.test(verb)) {
      writes.push(`${verb} ${resource}`);
    }
  },
});
after(() => server.stop());
const { client } = server;
await installCrd(client, Site);
const namespace = "default";
await client.create(Site, {
  metadata: { namespace, name: "alpha", labels: { tier: "a" } },
  spec: { html: "<p>" },
});
await client.create(Site, {
  metadata: { namespace, name: "bravo" },
  spec: { html: "<p>" },
});
await client.create(Service, {
  metadata: { namespace, name: "known" },
  spec: { ports: [{ port: 80 }] },
});
await client.create(Secret, {
  metadata: { namespace, name: "key" },
  stringData: { key: "squirrel" },
});
// What follows only reads.
writes.length = 0;
const folder = temporaryFolder();
const kubeconfig = writeText(folder, "config", server.kubeconfig);
const limited = writeText(
  folder,
  "limited",
  server.kubeconfigFor({ name: "nobody" }),
);

async function coracle(...args: readonly string[]) {
  let out = "";
  let said = "";
  const code = await runCommandLine(args, {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  }, [planCommand, snapshotCommand]);
  return { code, out, said };
}

const plan = (name: string, ...flags: readonly string[]) =>
  coracle("plan", fixture(name), "--kubeconfig", kubeconfig, ...flags);

test("coracle plan: exit code 2 for changes, as text, JSON, page and Markdown", async () => {
  const json = `${folder}/plan.json`;
  const html = `${folder}/plan.html`;
  const markdown = `${folder}/plan.md`;
  const { code, out } = await plan(
    "site_old",
    ...["--json", json, "--markdown", markdown, "--for", "10m"],
    ...["--html", html],
  );
  const page = readFileSync(html, "utf8");
  const [, data = ""] = /id="plan">(.*)<\/script>/.exec(page) ?? [];
  const { changes } = JSON.parse(readFileSync(json, "utf8"));
  assert.deepEqual(JSON.parse(data).changes, changes);
  // No name can end the element.
  assert.ok(!data.includes("<") && JSON.stringify(changes).includes("<"));
  assert.equal(code, 2);
  assert.match(out, /^10 objects would change: /);
  const report = JSON.parse(readFileSync(json, "utf8"));
  assert.equal(report.changes.length, 10);
  assert.equal(report.simulated.duration, 600_000);
  assert.equal(report.simulated.quiet, true);
  assert.match(
    readFileSync(markdown, "utf8"),
    /\| ConfigMap \| {2}\| {2}\| {2}\| 4 \|/,
  );
  const { out: printed } = await plan("site_old", "--json", "-");
  assert.equal(JSON.parse(printed).changes.length, 10);
  assertDocumented(report, "plan");
});

test("coracle plan --fail-on: exit code 1 for what it names alone", async () => {
  const created = await plan("site_old", "--fail-on", "create,delete");
  assert.equal(created.code, 1);
  assert.match(created.said, /The plan fails: objects are created\.\n$/);
  assert.equal((await plan("site_old", "--fail-on", "delete")).code, 2);
});

test("coracle plan --from: what an older version would do is left out", async () => {
  const older = writeText(
    folder,
    "older.ts",
    `export { operator } from "${pathToFileURL(fixture("site_old"))}";`,
  );
  const same = await plan("site_old", "--from", older);
  assert.equal(same.code, 0);
  assert.match(same.out, /^Nothing to do, compared with the older version: /);
  const json = `${folder}/from.json`;
  const { code, out } = await plan(
    ...["site_new", "--from", fixture("site_old"), "--json", json],
  );
  assert.equal(code, 2);
  assertDocumented(JSON.parse(readFileSync(json, "utf8")), "plan");
  assert.match(out, /2 × create ServiceAccount/);
  assert.match(
    out,
    /No longer, which the older version would do\n {2}create ConfigMap default\/alpha-legacy/,
  );
  assert.doesNotMatch(out, /create ConfigMap default\/alpha of/);
});

test("coracle plan: loops, requests held back, kinds read on demand", async () => {
  const json = `${folder}/loop.json`;
  const { code, out } = await plan(
    ...["site_loop", "--json", json, "--for", "20m"],
  );
  assert.equal(code, 2);
  assert.match(out, /and it does not rest\./);
  assert.match(
    out,
    /ConfigMap default\/alpha: 2\d writes, one every 1m, 2 states in turn: \.data\.turn/,
  );
  assert.match(out, /\d+ × GET https:\/\/api\.example\.com\/sites, held back/);
  assert.match(out, /get services\n/);
  assert.doesNotMatch(out, /hush/);
  const looping = JSON.parse(readFileSync(json, "utf8"));
  assertDocumented(looping, "plan");
  const { cluster } = looping;
  const plurals = cluster.resources.map((one: { plural: string }) =>
    one.plural
  );
  assert.ok(plurals.includes("services"));
  assert.ok(!plurals.includes("secrets"));
  assert.equal(
    (await plan(
      ...["site_loop", "--fail-on", "loop,fetch", "--for", "20m"],
    )).code,
    1,
  );
});

test("coracle plan --allow-fetch: the answer of an allowed host is in the plan", async () => {
  const outside = createServer((_request, response) => response.end("squared"));
  outside.listen(0, "127.0.0.1");
  await once(outside, "listening");
  const { port } = outside.address() as AddressInfo;
  process.env["SITE_URL"] = `http://127.0.0.1:${port}`;
  try {
    const { out } = await plan(
      ...["site_fetch", "--for", "2m", "--show", "all"],
      ...["--allow-fetch", `127.0.0.1:${port}`],
    );
    assert.match(out, /\d+ × GET http:\/\/127\.0\.0\.1:\d+\/sites, sent/);
    assert.match(out, /title: \+? ?"?squared/);
    const held = await plan("site_fetch", "--for", "2m");
    assert.match(held.out, /\/sites, held back/);
    assert.equal(held.code, 1);
  } finally {
    delete process.env["SITE_URL"];
    outside.closeAllConnections();
    outside.close();
  }
});

test("coracle plan: sockets are held back, but to an allowed host", async () => {
  const outside = createSocketServer((socket) => {
    socket.once("data", (name) => socket.end(`${name} squared`));
  });
  outside.listen(0, "127.0.0.1");
  await once(outside, "listening");
  const { port } = outside.address() as AddressInfo;
  process.env["SITE_PORT"] = String(port);
  let connections = 0;
  outside.on("connection", () => connections++);
  try {
    const held = await plan("site_socket", "--for", "2m");
    const asked = `CONNECT 127.0.0.1:${port}`;
    assert.match(held.out, new RegExp(`\\d+ × ${asked}, held back`));
    assert.equal(held.code, 1);
    assert.equal(connections, 0);
    const { out } = await plan(
      ...["site_socket", "--for", "2m", "--show", "all"],
      ...["--allow-fetch", "127.0.0.1"],
    );
    assert.match(out, new RegExp(`2 × ${asked}, sent`));
    assert.match(out, /title: \+? ?"?alpha squared/);
  } finally {
    delete process.env["SITE_PORT"];
    outside.close();
  }
});

test("coracle plan --selector: other objects of the operator are not read", async () => {
  const { out } = await plan("site_old", "--selector", "tier=a");
  assert.match(out, /^5 objects would change: /);
  assert.match(out, /Only the objects with tier=a were read/);
});

test("coracle plan: what may not be read is named, and is no failure", async () => {
  const { code, out } = await coracle(
    ...["plan", fixture("site_old"), "--kubeconfig", limited],
  );
  assert.equal(code, 0);
  assert.match(
    out,
    /Not read\n(?: {2}.*\n)* {2}deployments\.apps: forbidden\n/,
  );
});

test("coracle plan: a wrong command line has exit code 1, not 2", async () => {
  const commands = [
    ["plan"],
    ["plan", fixture("missing")],
    ["plan", fixture("site_old"), "--nothing"],
    ["plan", fixture("site_old"), "--for", "soon"],
    ["plan", fixture("site_old"), "--fail-on", "deletion"],
    ["plan", fixture("site_old"), "--snapshot", "a", "--context", "b"],
  ];
  for (const args of commands) {
    const { code, said } = await coracle(...args);
    assert.equal(code, 1, args.join(" "));
    assert.match(said, /^Cannot .*\nSee coracle help plan\n$/s);
  }
});

test("coracle snapshot: a plan from the file equals that of the cluster", async () => {
  const file = `${folder}/site.snapshot`;
  const taken = await coracle(
    ...["snapshot", fixture("site_new"), "--output", file],
    ...["--kubeconfig", kubeconfig],
  );
  assert.equal(taken.code, 0);
  assert.match(taken.out, /^Wrote .*: \d+ objects of \d+ kinds, \d+ bytes\n$/);
  const changes = async (...flags: readonly string[]) => {
    const { out } = await coracle(
      ...["plan", fixture("site_new"), "--json", "-", ...flags],
    );
    const report = JSON.parse(
      out.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>"),
    );
    return report.changes;
  };
  const expected = await changes("--kubeconfig", kubeconfig);
  assert.ok(expected.length > 0);
  assert.deepEqual(await changes("--snapshot", file), expected);
});

test("coracle snapshot: values of Secrets are digests, unless asked for", async () => {
  const dataOf = async (...flags: readonly string[]) => {
    const file = `${folder}/secrets.snapshot`;
    await coracle(
      ...["snapshot", "--output", file, "--kubeconfig", kubeconfig],
      ...["--kind", "Secret", ...flags],
    );
    const [secret] = (await readSnapshot(file)).objects("/secrets");
    return atob((secret?.object as Secret | undefined)?.data?.["key"] ?? "");
  };
  assert.match(await dataOf(), /^digest-[0-9a-f]{32}$/);
  assert.equal(await dataOf("--secrets"), "squirrel");
});

test("coracle snapshot: with pseudonyms a plan finds the same, without a name", async () => {
  const file = `${folder}/nameless.snapshot`;
  const { code } = await coracle(
    ...["snapshot", fixture("site_new"), "--output", file, "--pseudonyms"],
    ...["--kubeconfig", kubeconfig],
  );
  assert.equal(code, 0);
  const text = gunzipSync(readFileSync(file)).toString();
  assert.doesNotMatch(text, /alpha|bravo/);
  const changes = async (...flags: readonly string[]) => {
    const { out } = await coracle(
      ...["plan", fixture("site_new"), "--json", "-", ...flags],
    );
    const { changes } = JSON.parse(out) as {
      readonly changes: readonly Readonly<Record<string, unknown>>[];
    };
    return changes.map(({ action, kind }) => `${action} ${kind}`).toSorted();
  };
  assert.deepEqual(
    await changes("--snapshot", file),
    await changes("--kubeconfig", kubeconfig),
  );
  const kept = await coracle(
    ...["snapshot", "--output", file, "--kubeconfig", kubeconfig],
    ...["--keep", "alpha"],
  );
  assert.match(kept.said, /Cannot use --keep without --pseudonyms/);
});

test("coracle snapshot: beyond its limit nothing is written", async () => {
  const file = `${folder}/none.snapshot`;
  const { code, said } = await coracle(
    ...["snapshot", "--output", file, "--kubeconfig", kubeconfig],
    ...["--limit", "1KiB"],
  );
  assert.equal(code, 1);
  assert.match(said, /larger than the limit of 1024 bytes/);
  await assert.rejects(readSnapshot(file), /no such file/);
});

test("snapshot that was cut, or is another file, is refused", async () => {
  const file = `${folder}/cut.snapshot`;
  await coracle("snapshot", "--output", file, "--kubeconfig", kubeconfig);
  const whole = readFileSync(file);
  const { writeFileSync } = await import("node:fs");
  writeFileSync(file, whole.subarray(0, whole.length - 40));
  await assert.rejects(readSnapshot(file), SyntaxError);
  writeFileSync(file, "apiVersion: v1\n");
  await assert.rejects(readSnapshot(file), SyntaxError);
});

test("snapshot of another version, or with wrong lines, is refused by its line", async () => {
  const file = `${folder}/wrong.snapshot`;
  const head = `{"coracle":"snapshot","format":1}\n`;
  const end =
    `{"end":{"at":1,"server":"v1","resources":[],"unread":[],"hidesSecrets":true}}\n`;
  const refused = [
    [1, `{"coracle":"snapshot","format":2}\n${end}`],
    [1, end],
    [2, `${head}{"resource":{"group":1}}\n${end}`],
    [2, `${head}{"metadata":{"name":"of no resource"}}\n${end}`],
    [2, `${head}${"[".repeat(100_000)}\n${end}`],
    [3, `${head}${end}${end}`],
  ] as const;
  for (const [line, text] of refused) {
    writeFileSync(file, gzipSync(text));
    await assert.rejects(readSnapshot(file), {
      name: "SyntaxError",
      message: new RegExp(`line ${line} is not that of a snapshot`),
    });
  }
  writeFileSync(file, gzipSync(head + end));
  assert.equal((await readSnapshot(file)).info.server, "v1");
});

test("snapshot with a line without end is refused before it fills memory", async () => {
  const file = `${folder}/bomb.snapshot`;
  const part = gzipSync("x".repeat(8 * 2 ** 20), { level: 1 });
  const parts = Array<Uint8Array>(200).fill(part);
  const head = gzipSync(`{"coracle":"snapshot","format":1}\n`);
  writeFileSync(file, Buffer.concat([head, ...parts]));
  await assert.rejects(readSnapshot(file), /line 2 is not that of a snapshot/);
});

test("plans and snapshots have written nothing to the cluster", () => {
  assert.deepEqual(writes, []);
});

test("test cluster with a snapshot: uids, versions and rest are kept", async () => {
  const file = `${folder}/cluster.snapshot`;
  await coracle("snapshot", "--output", file, "--kubeconfig", kubeconfig);
  const key = { namespace, name: "alpha" };
  const original = await client.get(Site, key);
  const cluster = await TestCluster.start({
    snapshot: file,
    cluster: "embedded",
  });
  try {
    const copy = await cluster.client.get(Site, key);
    assert.deepEqual(copy, original);
    // It is a server like any other: it validates, and deletes with dependents.
    await assert.rejects(
      cluster.client.patch(Site, key, { spec: { replicas: 1.5 } }),
      /replicas/,
    );
    await cluster.client.create(ConfigMap, {
      metadata: {
        ...{ namespace, name: "owned" },
        ownerReferences: [{
          ...{ apiVersion: "plan.coracle.dev/v1", kind: "Site", name: "alpha" },
          uid: copy.metadata.uid!,
        }],
      },
    });
    await cluster.client.delete(Site, key);
    await cluster.until(async () =>
      await cluster.client.find(ConfigMap, { namespace, name: "owned" }) ===
        undefined
    );
  } finally {
    await cluster.stop();
  }
});

test("coracle plan: a definition that is not established is named", async () => {
  const output = `${folder}/established`;
  await coracle(
    ...["snapshot", fixture("site_old"), "--output", output],
    ...["--kubeconfig", kubeconfig],
  );
  const lines = gunzipSync(readFileSync(output)).toString().split("\n");
  const changed = lines.map((line) =>
    line.includes('"NamesAccepted"')
      ? JSON.stringify({ ...JSON.parse(line), status: {} })
      : line
  );
  assert.notDeepEqual(changed, lines);
  writeFileSync(output, gzipSync(changed.join("\n")));
  const { out } = await coracle(
    ...["plan", fixture("site_old"), "--snapshot", output, "--for", "2m"],
  );
  assert.match(
    out,
    /definitions that it does not serve, as they are not established: sites\.plan\.coracle\.dev\./,
  );
});
