/**
 * Main module of the process that the script `etcd` of `coracle envtest` starts.
 * Its arguments are the settings as JSON, and the flags of etcd.
 *
 * @module
 */
import process from "node:process";
import { keepCompiledModules } from "../compile_cache.ts";
import type { EtcdStandIn } from "./etcd_stand_in.ts";

keepCompiledModules();
const { EtcdStandIn: StandIn } = await import("./etcd_stand_in.ts");

const [settings = "{}", ...args] = process.argv.slice(2);
let standIn: EtcdStandIn | undefined;

function end(): void {
  void (standIn?.stop() ?? Promise.resolve()).finally(() => process.exit(0));
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, end);
}
try {
  standIn = await StandIn.start(args, JSON.parse(settings), end);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
