/**
 * Operator of Greetings in a process of its own:
 * `greeting_operator.ts coracle|client-node|patch|watch-patch KUBECONFIG OBJECTS`.
 * Its input and output are those of an `OperatorProcess`. The line `profile`
 * starts a CPU profile, `profile FILE` ends and stores it.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import process from "node:process";
import { createInterface } from "node:readline";
import { OPERATORS } from "./greeting_operators.ts";
import { cpuTime } from "./sampling.ts";

/** Interval of the samples of a profile, in microseconds. */
const SAMPLE_INTERVAL = 200;

let session: Session | undefined;

async function profile(file: string | undefined): Promise<void> {
  if (file === undefined) {
    session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", {
      interval: SAMPLE_INTERVAL,
    });
    await session.post("Profiler.start");
  } else {
    const stopped = await session?.post("Profiler.stop");
    writeFileSync(file, JSON.stringify(stopped?.profile));
  }
}

const [name = "", kubeconfig = "", objects = ""] = process.argv.slice(2);
const write = await OPERATORS[name]?.(kubeconfig, Number(objects));
for await (const line of createInterface({ input: process.stdin })) {
  const [order, argument] = line.split(" ");
  if (order === "profile" && argument === undefined) await profile(argument);
  if (order === "write") await write?.(argument ?? "");
  const usage = { cpu: cpuTime(), pid: process.pid };
  if (order === "profile" && argument !== undefined) await profile(argument);
  process.stdout.write(`${JSON.stringify(usage)}\n`);
}
process.exit(0);
