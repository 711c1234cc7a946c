/**
 * Embedded API server in a process of its own: `api_server_process.ts
 * http|https`. Prints one line of JSON when it listens; when its input ends it
 * stops and prints its memory in a second line.
 *
 * @module
 */
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { peakRss } from "./sampling.ts";

const server = await ApiServer.start({ tls: process.argv[2] === "https" });
const { url, token, certificateAuthority: authority } = server;
const say = (value: unknown) => {
  process.stdout.write(`${JSON.stringify(value)}\n`);
};
say({ url, token, authority });
process.stdin.resume();
process.stdin.on("end", async () => {
  const { user, system } = process.cpuUsage();
  say({ cpu: user + system, peak: peakRss().value });
  await server.stop();
});
