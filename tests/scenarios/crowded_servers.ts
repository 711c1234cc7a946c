/**
 * Embedded API server and probe server in one process, for clients that crowd
 * them. Prints the ports and the token; a signal stops both, and the process
 * then ends by itself if nothing is left open.
 */
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { systemClock } from "@coracle/operator/client";
import { probeSettings } from "../support/probe_settings.ts";
import { ProbeServer } from "../../core/operator/probe_server.ts";

const server = await ApiServer.start({ port: 0, tls: false });
const probes = new ProbeServer({
  clock: systemClock,
  state: () => "started",
  health: () => ({ ready: true }),
  why: () => [],
  inspect: () => ({}),
  failed() {},
  metrics: () => "",
});
await probes.start(
  probeSettings({ port: 0, host: "127.0.0.1" }),
);
process.once("SIGTERM", async () => {
  await probes.stop();
  await server.stop();
  process.stdout.write("stopped\n");
});
process.stdout.write(
  JSON.stringify({
    api: Number(new URL(server.url).port),
    probes: probes.port,
    token: server.token,
  }) + "\n",
);
