import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { setup, teardown } from "./api_server_setup.ts";

/** Bun does not hand certificates to the agent that client-node gives it. */
const skip: string | false = "Bun" in globalThis &&
  "client-node cannot trust a server's certificate on Bun";

test("The global setup gives client-node a server, and takes it away", {
  skip,
}, async () => {
  await setup();
  const file = process.env["KUBECONFIG"] ?? "";
  try {
    const config = new KubeConfig();
    config.loadFromDefault();
    const core = config.makeApiClient(CoreV1Api);
    const namespace = "default";
    const body = { metadata: { name: "settings" }, data: { color: "blue" } };
    await core.createNamespacedConfigMap({ namespace, body });
    const read = { namespace, name: "settings" };
    const { data } = await core.readNamespacedConfigMap(read);
    assert.deepEqual(data, { color: "blue" });
  } finally {
    await teardown();
  }
  assert.equal(existsSync(file), false);
});
