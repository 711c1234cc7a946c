import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { ApiServer } from "../../../dev/apiserver/server.ts";
import { Client } from "../../../core/client/client.ts";
import { ConfigMap } from "../../../core/kinds/core_v1.ts";

const AT = { namespace: "default", name: "a" };

test("Client ends a compressed response at its limit (decompression bomb)", async () => {
  const bomb = gzipSync(new Uint8Array(256 << 20));
  assert.ok(bomb.length < 1 << 20);
  const server = createServer((_request, response) => {
    response.writeHead(200, {
      "content-type": "application/json",
      "content-encoding": "gzip",
    });
    response.end(bomb);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new Client({ server: `http://127.0.0.1:${port}` }, {
    maxResponseBytes: 1 << 20,
  });
  const before = process.memoryUsage().rss;
  try {
    await assert.rejects(client.get(ConfigMap, AT), /1048576 bytes/);
    assert.ok(process.memoryUsage().rss - before < 128 << 20, "memory");
  } finally {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

test("ApiServer does not decompress the body of a request", async () => {
  const server = await ApiServer.start({ port: false });
  try {
    const { status } = await server.transport.send({
      method: "POST",
      path: "/api/v1/namespaces/default/configmaps",
      headers: {
        "content-type": "application/json",
        "content-encoding": "gzip",
      },
      body: gzipSync(JSON.stringify({ metadata: { name: "a" } })),
    });
    assert.ok(status >= 400 && status < 500, String(status));
    assert.equal(await server.client.find(ConfigMap, AT), undefined);
  } finally {
    await server.stop();
  }
});
