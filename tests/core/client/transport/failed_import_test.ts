import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ClusterTransport } from "../../../../core/client/transport/cluster_transport.ts";
import { failFirstImports } from "../../../support/failed_imports.ts";
import { RUNTIME } from "../../../support/program.ts";

test("ClusterTransport works after its modules could not be loaded once", async () => {
  using imports = failFirstImports(/\/undici_transport\.ts$/);
  const server = createServer((_, response) => response.end("ok"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const transport = new ClusterTransport(
    { server: `http://127.0.0.1:${port}` },
    { current: () => Promise.resolve({}), refresh: () => Promise.resolve({}) },
  );
  try {
    for (const method of ["GET", "POST"] as const) {
      const request = { method, path: "/", headers: {} };
      const before = imports.failed.size;
      const first = await transport.send(request).catch(String);
      if (imports.failed.size > before) {
        assert.match(String(first), /Too many open files/);
      }
      const { status, cancel } = await transport.send(request);
      assert.equal(status, 200);
      await cancel();
    }
    assert.equal(imports.failed.size, { node: 1, deno: 1, bun: 0 }[RUNTIME]);
  } finally {
    await transport.close();
    server.close();
  }
});
