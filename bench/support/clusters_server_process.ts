/**
 * Embedded API servers in a process of their own: `clusters_server_process.ts
 * CLUSTERS`. Prints their kubeconfigs as a line of JSON when each has a ConfigMap,
 * a Service and a Secret; ends with its input.
 *
 * @module
 */
import process from "node:process";
import { ConfigMap, Secret, Service } from "../../core/kinds/core_v1.ts";
import { ApiServer } from "../../dev/apiserver/server.ts";

const [clusters = 0] = process.argv.slice(2).map(Number);
const servers: ApiServer[] = [];
const metadata = { namespace: "default", name: "first" };
for (let index = 0; index < clusters; index++) {
  const server = await ApiServer.start({ http2: true, seed: index });
  const { client } = server;
  await client.create(ConfigMap, { metadata });
  await client.create(Secret, { metadata });
  await client.create(Service, { metadata, spec: { ports: [{ port: 80 }] } });
  servers.push(server);
}
const kubeconfigs = servers.map(({ kubeconfig }) => kubeconfig);
process.stdout.write(`${JSON.stringify(kubeconfigs)}\n`);
process.stdin.resume().on("end", async () => {
  await Promise.all(servers.map((server) => server.stop()));
  process.exit();
});
