/**
 * Embedded API server in a process of its own, with the ConfigMap `policy` and a
 * thousand others. At SIGUSR2 it changes all of these, and creates a file when
 * the events are written.
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";

const [, , kubeconfig = "", written = ""] = process.argv;
const server = await ApiServer.start({ port: 0, tls: false });
const names = Array.from({ length: 1_000 }, (_, index) => `part-${index}`);

async function apply(turn: string): Promise<void> {
  const applied = names.map((name) =>
    server.client.apply(ConfigMap, {
      metadata: { namespace: "default", name, labels: { part: "yes" } },
      data: { turn },
    }, { fieldManager: "burst" })
  );
  await Promise.all(applied);
}

await server.client.create(ConfigMap, {
  metadata: { namespace: "default", name: "policy", labels: { policy: "yes" } },
});
await apply("first");
process.once("SIGUSR2", async () => {
  await apply("second");
  writeFileSync(written, "");
});
process.once("SIGTERM", () => server.stop());
writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 });
process.stdout.write("ready\n");
