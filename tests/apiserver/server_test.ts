import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { ApiServer, type AuditEvent } from "@coracle/dev/apiserver";
import { VirtualClock } from "@coracle/dev";
import { Client, untyped } from "@coracle/operator/client";
import { CronJob } from "@coracle/operator/kinds";
import { inTime } from "../support/in_time.ts";
import { until } from "../support/until.ts";
import { readJournal } from "../../dev/apiserver/storage/file_journal.ts";

const ConfigMap = untyped({
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  scope: "Namespaced",
});
const key = { namespace: "default", name: "a" };

test("ApiServer has a client that works without a socket", async () => {
  const server = await ApiServer.start({ port: false });
  await server.client.create(ConfigMap, { metadata: key });
  const { metadata } = await server.client.get(ConfigMap, key);
  assert.equal(metadata.name, "a");
  assert.throws(() => server.url, /started without a port/);
  await server.stop();
  await assert.rejects(
    server.transport.send({ method: "GET", path: "/readyz", headers: {} }),
    /closed/,
  );
});

test("a read after the stop of an ApiServer fails without a retry", async () => {
  const server = await ApiServer.start({ port: false });
  // Nobody moves this clock, so that a retry would not end.
  const clock = new VirtualClock();
  const { transport } = server;
  const clientOf = () => new Client({ transport }, { clock });
  const early = clientOf();
  await early.get(ConfigMap, key).catch(() => {});
  await server.stop();
  for (const client of [early, clientOf(), server.client]) {
    await assert.rejects(
      inTime("it fails", client.list(ConfigMap, { namespace: "default" })),
      /the server was stopped/,
    );
  }
});

test("the stop of an ApiServer ends a read that waits for its retry", async () => {
  const server = await ApiServer.start({ port: false });
  const clock = new VirtualClock();
  const client = new Client({ transport: server.transport }, { clock });
  const fault = server.faults.add({
    verb: "list",
    effect: { reset: "request" },
  });
  const reading = client.list(ConfigMap, { namespace: "default" });
  await until("it waits", () => fault.hits > 0);
  await server.stop();
  await assert.rejects(inTime("it fails", reading), /the server was stopped/);
});

test("ApiServer can be stopped twice, and frees its port", async () => {
  const server = await ApiServer.start({ tls: false });
  const port = Number(new URL(server.url).port);
  await server.stop();
  await server.stop();
  const again = await ApiServer.start({ port, tls: false });
  await again.stop();
});

test("ApiServer reports that a port is in use", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  await assert.rejects(ApiServer.start({ port }), { code: "EADDRINUSE" });
  await new Promise((resolve) => other.close(resolve));
});

test("ApiServer that cannot listen leaves no timers of its controllers", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coracle-server-"));
  const options = { simulate: true, data: join(folder, "data") };
  const first = await ApiServer.start({ ...options, port: false });
  await first.client.create(CronJob, {
    metadata: key,
    spec: {
      schedule: "0 0 1 1 *",
      jobTemplate: {
        spec: {
          template: {
            spec: {
              restartPolicy: "Never",
              containers: [{ name: "c", image: "i" }],
            },
          },
        },
      },
    },
  });
  await first.stop();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  const clock = new VirtualClock();
  await assert.rejects(ApiServer.start({ ...options, port, clock }), {
    code: "EADDRINUSE",
  });
  assert.equal(clock.pendingTimers, 0);
  await new Promise((resolve) => other.close(resolve));
  rmSync(folder, { recursive: true });
});

test("ApiServer rejects unknown and invalid options", async () => {
  const start = (options: object) => ApiServer.start(options);
  await assert.rejects(start({ prot: 1 }), /did you mean "port"/);
  await assert.rejects(start({ pods: { log: 1 } }), /did you mean "logs"/);
  await assert.rejects(
    start({ featureGates: { WatchList: true } }),
    /there is no option "WatchList"/,
  );
  await assert.rejects(
    start({ pods: { exec: 1 } }),
    /pods: "exec" must be a function: received a number/,
  );
  await assert.rejects(start({ port: 70_000 }), RangeError);
  await assert.rejects(start({ establishingDelay: -1 }), RangeError);
});

test("ApiServer refuses a service whose name no webhook can reach", async () => {
  for (const name of ["no-friday", "ops/deploy:https", "https://ops/deploy"]) {
    await assert.rejects(
      ApiServer.start({ port: false, services: { [name]: () => undefined } }),
      /the name of a service must be namespace\/name, namespace\/name:port or/,
    );
  }
});

test("ApiServer audits every request, without its token", async () => {
  const events: AuditEvent[] = [];
  const server = await ApiServer.start({
    port: false,
    audit: (event) => events.push(event),
  });
  await server.client.find(ConfigMap, key);
  await server.client.create(ConfigMap, { metadata: key });
  assert.deepEqual(
    events.map(({ verb, resource, name, status }) => [
      verb,
      resource,
      name,
      status,
    ]),
    [["get", "configmaps", "a", 404], ["create", "configmaps", "", 201]],
  );
  assert.equal(JSON.stringify(events).includes(server.token), false);
  await server.stop();
});

test("ApiServer with the same seed generates the same UIDs", async () => {
  const uid = async () => {
    const server = await ApiServer.start({ port: false, seed: 42 });
    const { metadata } = await server.client.create(ConfigMap, {
      metadata: key,
    });
    await server.stop();
    return metadata.uid;
  };
  assert.equal(await uid(), await uid());
});

test("ApiServer keeps its objects in a file over restarts", async () => {
  const folder = mkdtempSync(join(tmpdir(), "data-"));
  const data = join(folder, "data");
  try {
    const first = await ApiServer.start({ port: false, data });
    const { metadata } = await first.client.create(ConfigMap, {
      metadata: key,
    });
    await first.stop();
    const second = await ApiServer.start({ port: false, data });
    const found = await second.client.get(ConfigMap, key);
    assert.deepEqual(found.metadata, metadata);
    const changed = await second.client.patch(ConfigMap, key, {
      data: { k: "1" },
    }, {
      type: "merge",
    });
    assert.ok(
      Number(changed.metadata.resourceVersion) >
        Number(metadata.resourceVersion),
    );
    await second.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Creates ConfigMaps until it is killed; tells each one that was answered. */
const writer = (module: string, data: string) => `
  import process from "node:process";
  import { setTimeout } from "node:timers/promises";
  const { ApiServer } = await import(${JSON.stringify(module)});
  const server = await ApiServer.start({
    port: false,
    data: ${JSON.stringify(data)},
  });
  for (let index = 0;; index++) {
    const { status } = await server.transport.send({
      method: "POST",
      path: "/api/v1/namespaces/default/configmaps",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ metadata: { name: "cm-" + index } }),
    });
    if (status === 201) process.stdout.write(index + "\\n");
    await setTimeout(1);
  }
`;

/** How each runtime runs a text as a module. */
function evaluation(): string[] {
  const runtime = process.versions as Record<string, string | undefined>;
  if (runtime["deno"] !== undefined) return ["eval", "--no-check"];
  return runtime["bun"] !== undefined ? ["-e"] : ["--input-type=module", "-e"];
}

test("ApiServer loses no acknowledged write when it is killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "data-"));
  const data = join(folder, "data");
  try {
    const module = new URL(
      "../../dev/apiserver/server.ts",
      import.meta.url,
    );
    const child = spawn(process.execPath, [
      ...evaluation(),
      writer(module.href, data),
    ], { stdio: ["ignore", "pipe", "inherit"] });
    let told = "";
    child.stdout.on("data", (chunk) => told += chunk);
    const ended = new Promise((resolve) => child.once("close", resolve));
    const deadline = Date.now() + 20_000;
    while (told.split("\n").length < 50 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    child.kill("SIGKILL");
    await ended;
    const acknowledged = told.split("\n").slice(0, -1);
    assert.ok(acknowledged.length >= 49, `only ${acknowledged.length} writes`);
    const names = new Set(
      readJournal(data)?.objects.map(({ object }) => object.metadata.name),
    );
    for (const index of acknowledged) {
      assert.ok(names.has(`cm-${index}`), index);
    }
    const server = await ApiServer.start({ port: false, data });
    const last = `cm-${acknowledged.at(-1)}`;
    await server.client.get(ConfigMap, { namespace: "default", name: last });
    await server.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("ApiServer does not start on the data file of another server", async () => {
  const folder = mkdtempSync(join(tmpdir(), "data-"));
  const options = { port: false, data: join(folder, "data") } as const;
  const first = await ApiServer.start(options);
  try {
    await assert.rejects(
      ApiServer.start(options),
      /Cannot use .*data: another server uses it/,
    );
    await first.stop();
    const next = await ApiServer.start(options);
    await first.stop();
    await assert.rejects(ApiServer.start(options), /Cannot use /);
    await next.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("ApiServer unlocks its data file when it cannot start", async () => {
  const folder = mkdtempSync(join(tmpdir(), "data-"));
  const data = join(folder, "data");
  try {
    writeFileSync(data, "notes");
    await assert.rejects(ApiServer.start({ port: false, data }), /line 1/);
    assert.equal(readFileSync(data, "utf8"), "notes");
    writeFileSync(data, "");
    const server = await ApiServer.start({ port: false, data });
    await server.client.list(ConfigMap, { namespace: "default" });
    await server.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
