import { ApiServer } from "@coracle/dev/apiserver";
import { Pod } from "@coracle/operator/kinds";
import { KubeConfig } from "@kubernetes/client-node";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { until } from "../run_example.ts";
import { backup } from "./backup.ts";
import { backup as backupByClientNode } from "./backup_client_node.ts";

let isBroken = false;
// On Bun client-node cannot trust a server's certificate.
const isPlain = "Bun" in globalThis;

const server = await ApiServer.start({
  seed: 1,
  simulate: true,
  tls: !isPlain,
  pods: {
    *logs({ tailLines = Infinity }) {
      const lines = ["starts\n", "is ready\n", "disk is full\n"];
      yield* lines.slice(-Math.min(tailLines, lines.length));
    },
    async exec({ command, write, writeError }) {
      assert.deepEqual(command, ["dump", "--all"]);
      if (!isBroken) await write("rows\n");
      else await writeError("cannot write\n");
      return isBroken ? 3 : 0;
    },
  },
});
after(() => server.stop());

const { client } = server;
const namespace = "default";

for (
  const [program, run] of [
    ["by client-node", () => {
      const config = new KubeConfig();
      config.loadFromString(server.kubeconfig);
      Object.assign(config.getCurrentCluster()!, { skipTLSVerify: isPlain });
      return backupByClientNode(config, namespace);
    }],
    ["moved to the client", () => backup(client, namespace)],
  ] as const
) {
  test(`The backup ${program} runs a command, and shows the log if it fails`, async () => {
    await client.deleteCollection(Pod, { namespace, gracePeriodSeconds: 0 });
    await assert.rejects(run, { message: "No database runs" });
    const key = { namespace, name: "database" };
    await client.create(Pod, {
      metadata: { ...key, labels: { app: "database" } },
      spec: { containers: [{ name: "main", image: "database" }] },
    });
    await until("the database runs", async () => {
      const { status } = await client.get(Pod, key);
      return status?.phase === "Running";
    });
    isBroken = false;
    assert.equal(await run(), "rows\n");
    isBroken = true;
    await assert.rejects(run, {
      message: "The dump ended with 3: cannot write\nis ready\ndisk is full\n",
    });
  });
}
