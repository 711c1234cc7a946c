/**
 * Embedded API server with the objects of a cluster whose operator is to be
 * planned, in a process of its own: `plan_server_process.ts SITES CONFIG_MAPS
 * [old]`. With `old`, the old version of the operator makes its objects. Prints its
 * kubeconfig as a line of JSON when all objects exist; ends with its input.
 *
 * @module
 */
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { silentLogger } from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import { ConfigMap } from "@coracle/operator/kinds";
import { Site } from "../../tests/testing/plan/fixtures/site.ts";
import { operator as oldOperator } from "../../tests/testing/plan/fixtures/site_old.ts";
import { runUntil } from "../../tests/testing/plan/happened.ts";

const [sites = 0, configMaps = 0] = process.argv.slice(2, 4).map(Number);
const isOld = process.argv[4] === "old";
const server = await ApiServer.start({ seed: 1 });
const { client } = server;
const namespace = "default";
const TEXT = "The quick brown fox jumps over the lazy dog. ".repeat(8);
await installCrd(client, Site);
for (let index = 0; index < sites; index++) {
  await client.create(Site, {
    metadata: { namespace, name: `site-${index}` },
    spec: { html: `<p>${index}` },
  });
}
for (let index = 0; index < configMaps; index++) {
  await client.create(ConfigMap, {
    metadata: { namespace, name: `other-${index}` },
    data: { text: `${index}: ${TEXT}` },
  });
}
if (isOld) {
  await runUntil(oldOperator({ client, logger: silentLogger }), async () => {
    const { items } = await client.list(Site);
    return items.every(({ status }) => status?.level === 1);
  }, { within: 600_000, every: 1_000 });
}
process.stdout.write(`${JSON.stringify(server.kubeconfig)}\n`);
process.stdin.resume().on("end", async () => {
  await server.stop();
  process.exit();
});
