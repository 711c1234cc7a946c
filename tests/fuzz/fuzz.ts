/**
 * Sends random requests to the embedded API server: verbs, paths, parameters,
 * headers and bodies, the same for the same seed. Fails if an answer is an
 * internal error or does not come, or if memory is not bounded.
 *
 * `npm run test:fuzz -- --requests 64000 --seed 1`; `--from N` sends only the
 * requests from that number on.
 *
 * @module
 */
import process from "node:process";
import { fuzz } from "./fuzz_run.ts";
import { commandLine } from "../support/command_line.ts";

/** Growth of the memory in use between the first and the last server, in bytes. */
const MAX_GROWTH = 128 * 2 ** 20;

const { integer } = commandLine("fuzz", {
  requests: { type: "string", default: "64000" },
  seed: { type: "string", default: String(Date.now() % 1_000_000) },
  from: { type: "string", default: "0" },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);
const seed = integer("seed");
const requests = integer("requests", 1);
print(`Seed ${seed}`);
const started = performance.now();
const report = await fuzz({
  requests,
  seed,
  from: integer("from"),
  progress: (done) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${done}`);
  },
});
for (const { number, what, request } of report.faults) {
  print(`\nRequest ${number}: ${what}\n${request}`);
}
const mebibytes = report.memory.map((bytes) => Math.round(bytes / 2 ** 20));
const seconds = ((performance.now() - started) / 1_000).toFixed(1);
print(
  `${requests} requests in ${seconds} s: ${
    Object.entries(report.statuses)
      .map(([status, count]) => `${count} ${status}`).join(", ")
  }`,
);
print(
  `Memory in use after the first server ${mebibytes[0]} MiB, after the last ${
    mebibytes[1]
  } MiB`,
);
const [first, last] = report.memory;
const hasGrown = last - first > MAX_GROWTH;
if (hasGrown) print(`It must not grow by more than ${MAX_GROWTH} bytes`);
print(`${report.faults.length} faults`);
process.exit(report.faults.length > 0 || hasGrown ? 1 : 0);
