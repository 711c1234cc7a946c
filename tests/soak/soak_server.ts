/**
 * Server process of a soak: an API server whose objects change, with random
 * faults, until a line on its standard input ends both. It ends with that input,
 * also when the process that started it was killed.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { systemClock } from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import { Buoy } from "./buoy.ts";
import { Churn } from "./churn.ts";
import { Random } from "./random.ts";
import { RoughProxy } from "./rough_proxy.ts";
import { Weather } from "./weather.ts";

const [kubeconfig = "", objects, seed, changes, http, way] = process.argv
  .slice(2);
process.stdin.once("end", () => process.exit()).resume();
const clock = systemClock;
const random = new Random(Number(seed));
const server = await ApiServer.start({
  seed: Number(seed),
  http2: http === "2",
});
const { client } = server;
await installCrd(client, Buoy);
const churn = new Churn({
  client,
  clock,
  random,
  objects: Number(objects),
  changesPerSecond: Number(changes),
});
const weather = new Weather({ server, clock, random, period: 5_000 });
await churn.fill();
const proxy = way === "proxy"
  ? await RoughProxy.start({ target: server.url, random, period: 2_000 })
  : undefined;
const reached = server.kubeconfig.replace(server.url, proxy?.url ?? server.url);
await writeFile(kubeconfig, reached, { mode: 0o600 });
process.stdout.write("ready\n");

const ending = new AbortController();
const going = Promise.all([
  churn.run(ending.signal),
  weather.run(ending.signal),
]);
await once(process.stdin, "data");
ending.abort();
await going;
proxy?.calm();
const rough = proxy === undefined ? "" : `, ${proxy.faults} of the proxy`;
process.stdout.write(
  `${churn.changes} changes during ${weather.faults} faults${rough}\n`,
);
