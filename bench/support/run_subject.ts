/**
 * Runs one subject of one bench, in the process that `run.ts` starts:
 * `run_subject.ts BENCH SUBJECT` prints its measures as one line of JSON.
 * `run_subject.ts BENCH` only loads its modules, and those that are loaded when
 * they are needed.
 *
 * @module
 */
import process from "node:process";
import { loadBench } from "./bench.ts";

const [name = "", wanted] = process.argv.slice(2);
const bench = await loadBench(name);
if (wanted === undefined) {
  await bench.load?.();
  await import("../../core/client/transport/undici_transport.ts");
  process.exit(0);
}
const subject = bench.subjects.find((subject) => subject.name === wanted);
if (subject === undefined) throw new Error(`No subject ${wanted} in ${name}`);
const measures = await subject.run();
process.stdout.write(`${JSON.stringify(measures)}\n`, () => process.exit(0));
