/**
 * Operator of Greetings in a process of its own:
 * `greeting_operator.ts coracle|client-node|patch KUBECONFIG OBJECTS`. Its input
 * and output are those of an `OperatorProcess`.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { OPERATORS } from "./greeting_operators.ts";
import { cpuTime } from "./sampling.ts";

const [name = "", kubeconfig = "", objects = ""] = process.argv.slice(2);
const write = await OPERATORS[name]?.(kubeconfig, Number(objects));
for await (const line of createInterface({ input: process.stdin })) {
  if (line.startsWith("write ")) await write?.(line.slice("write ".length));
  const usage = { cpu: cpuTime(), pid: process.pid };
  process.stdout.write(`${JSON.stringify(usage)}\n`);
}
process.exit(0);
