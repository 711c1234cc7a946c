/**
 * Prints where an operator's time goes that writes statuses: `profile.ts
 * [--warm-up N] [--storms N] [--objects N] [--functions N] [--v8=FLAGS] [--out FILE]`.
 * It runs the load of the bench `reconcile` against the embedded API server and
 * profiles the operator in the measured storms only. FLAGS of V8 are separated by
 * spaces. FILE is a profile for the developer tools of Chrome.
 *
 * @module
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { startEmbedded } from "./support/api_cluster.ts";
import { digits } from "./support/digits.ts";
import { ChangeLoad, createObjects } from "./support/change_load.ts";
import { GREETINGS } from "./support/load_target.ts";
import { OperatorProcess } from "./support/operator_process.ts";
import { type CpuProfile, timesOf } from "./support/profile_parts.ts";
import { OPERATOR_SOURCE, scriptCommand } from "./support/reconcilers.ts";
import { commandLine } from "../tests/support/command_line.ts";

const { values, integer } = commandLine("profile the operator", {
  "warm-up": { type: "string", default: "4" },
  storms: { type: "string", default: "8" },
  objects: { type: "string", default: "1000" },
  functions: { type: "string", default: "25" },
  v8: { type: "string", default: "" },
  out: { type: "string" },
});
const warmUp = integer("warm-up", 0);
const storms = integer("storms", 1);
const objects = integer("objects", 1);
const functions = integer("functions", 1);
const folder = await mkdtemp(join(tmpdir(), "coracle-profile-"));
const file = resolve(values.out ?? join(folder, "operator.cpuprofile"));

/** Profiles an operator while it writes statuses; returns its CPU time. */
async function profile(kubeconfig: string): Promise<number> {
  const size = { kubeconfig, target: GREETINGS, objects };
  await createObjects(size);
  const load = await ChangeLoad.open(size);
  const { storm: first } = await load.changeAll();
  const operator = new OperatorProcess(
    scriptCommand("coracle", { kubeconfig, objects }, {
      file: OPERATOR_SOURCE,
      flags: values.v8?.split(" ").filter(Boolean),
    }),
  );
  try {
    await first;
    for (let i = 0; i < warmUp; i++) await load.storm();
    const { cpu } = await operator.ask("profile");
    for (let i = 0; i < storms; i++) await load.storm();
    return (await operator.ask(`profile ${file}`)).cpu - cpu;
  } finally {
    load.close();
    await operator.stop();
  }
}

const cluster = await startEmbedded();
try {
  const cpu = await profile(cluster.kubeconfig);
  const text = await readFile(file, "utf8");
  const times = timesOf(JSON.parse(text) as CpuProfile);
  const runs = storms * objects;
  const total = times.parts.reduce((sum, { time }) => sum + time, 0);
  const line = (time: number, text: string) =>
    process.stdout.write(
      `${(time / runs).toFixed(1).padStart(8)} µs  ${
        (100 * time / total).toFixed(1).padStart(5)
      } %  ${text}\n`,
    );
  process.stdout.write(
    `Per reconcile that writes a status, of ${runs}: ${
      digits(cpu / runs)
    } µs CPU of all threads with the profiler's own\n\n`,
  );
  for (const { name, time } of times.parts) line(time, name);
  line(total, "all of the main thread");
  process.stdout.write("\n");
  for (const { name, part, time } of times.functions.slice(0, functions)) {
    line(time, `${name} [${part}]`);
  }
} finally {
  await cluster.stop();
  await rm(folder, { recursive: true, force: true });
}
