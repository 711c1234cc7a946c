/**
 * Measures one operator in less than half a minute, for tuning: `quick.ts
 * [SUBJECT] [--storms N] [--objects N]`. It prints the operator's processor time
 * per reconcile that writes a status, of each storm and in median, against the
 * embedded API server in a process of its own.
 *
 * @module
 */
import process from "node:process";
import { startEmbedded } from "./support/api_cluster.ts";
import { digits } from "./support/digits.ts";
import { createObjects } from "./support/change_load.ts";
import { GREETINGS } from "./support/load_target.ts";
import { RECONCILERS, RECORDED } from "./support/reconcilers.ts";
import { commandLine } from "../tests/support/command_line.ts";

const { positionals: [name = "coracle"], integer } = commandLine(
  "measure an operator",
  {
    storms: { type: "string", default: "9" },
    objects: { type: "string", default: "500" },
  },
  "SUBJECT",
);
const storms = integer("storms", 1);
const objects = integer("objects", 1);
const reconcilers = [...RECONCILERS, RECORDED];
const reconciler = reconcilers.find((reconciler) => reconciler.name === name);
if (reconciler === undefined) {
  const names = reconcilers.map(({ name }) => name).join("; ");
  throw new RangeError(
    `Cannot measure an operator: there are ${names}: received ${name}`,
  );
}
const cluster = await startEmbedded();
try {
  const { kubeconfig, pid: serverPid } = cluster;
  await createObjects({ kubeconfig, target: GREETINGS, objects });
  const measures = await reconciler.measure({
    kubeconfig,
    target: GREETINGS,
    serverPid,
    objects,
    warmUp: 4,
    storms,
    single: 50,
    onStorm: (cpu) => process.stdout.write(`${digits(cpu)} `),
  });
  process.stdout.write(`µs CPU/reconcile of ${name}\n\n`);
  for (const { unit, value } of measures) {
    process.stdout.write(`${digits(value).padStart(9)} ${unit}\n`);
  }
} finally {
  await cluster.stop();
}
