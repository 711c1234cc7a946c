import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ApiServer } from "@coracle/dev/apiserver";
import { ConfigMap } from "@coracle/operator/kinds";
import { inTime } from "../../support/in_time.ts";

/**
 * Connections; the large size is
 * `CONNECTIONS=10000 npm test -- node tests/apiserver/http/connections_test.ts`.
 */
const COUNT = Number(process.env["CONNECTIONS"] ?? 300);
const SECOND_MS = 1_000;

test("A change reaches each of many connections, and requests are still answered", async () => {
  const server = await ApiServer.start({ tls: false });
  const metadata = { name: "news", namespace: "default" };
  await server.client.create(ConfigMap, { metadata, data: { text: "old" } });
  const { port } = new URL(server.url);
  const file = fileURLToPath(new URL("watch_clients.ts", import.meta.url));
  const clients = spawn(process.execPath, [
    ..."Deno" in globalThis ? ["run", "-A"] : [],
    file,
    port,
    server.token,
    String(COUNT),
  ], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: clients.stdout })
    [Symbol.asyncIterator]();
  const next = (what: string) => inTime(what, lines.next(), 80 * SECOND_MS);
  try {
    assert.equal((await next("all connections are open")).value, "ADDED");
    const response = await fetch(`${server.url}/readyz`);
    assert.equal(await response.text(), "ok");
    await server.client.patch(ConfigMap, metadata, { data: { text: "new" } });
    assert.equal((await next("all have seen the change")).value, "MODIFIED");
  } finally {
    clients.kill();
    await server.stop();
  }
});
