import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import {
  createJob,
  GROUP,
  operatorFile,
  places,
} from "../support/dev_operator_file.ts";
import { coracle, Program } from "../support/program.ts";

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
