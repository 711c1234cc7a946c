import { type Command, type FlagValues, UsageError } from "./command.ts";
import { needOf, replicasFor, type Workload } from "./size_model.ts";
import { textOf } from "./serving.ts";

const MIB = 2 ** 20;
const UNITS = { KiB: 2 ** 10, MiB: MIB, GiB: 2 ** 30 } as const;

export const sizeCommand: Command = {
  name: "size",
  operands: "",
  count: [0, 0],
  summary: "say how many replicas and how much memory an operator needs",
  description:
    "Computes from measured costs how many replicas an operator needs, and what each\n" +
    "of them takes. Replicas share the runs; with --split each also keeps its share of\n" +
    "the objects only, by shard selectors, or by clusters:\n" +
    "coracle size --objects 1000000 --events 500 --memory 1GiB",
  flags: {
    "objects N": "objects of all kinds and clusters",
    "object-size SIZE":
      "JSON of an object, without managedFields (default 4KiB)",
    "kinds N": "kinds that are watched (default 1)",
    "clusters N":
      "clusters of a controller, beside the operator's own (default 0)",
    "events N": "changes of objects a second (default 0)",
    "runs N": "runs a second that write (default one for 20 events)",
    "memory SIZE": "memory limit of a replica (default 1GiB)",
    "split": "each replica keeps its share of the objects only",
  },
  required: ["objects"],
  run({ flags, terminal }) {
    const events = numberOf(flags, "events", 0);
    const clusters = numberOf(flags, "clusters", 0);
    const work: Workload = {
      objects: numberOf(flags, "objects", 0),
      objectSize: sizeOf(flags, "object-size", "4KiB"),
      kinds: numberOf(flags, "kinds", 1),
      clusters,
      events,
      runs: numberOf(flags, "runs", events / 20),
      isSplit: flags["split"] === true || clusters > 0,
    };
    const memory = sizeOf(flags, "memory", "1GiB");
    const replicas = replicasFor(work, memory);
    if (replicas === undefined) {
      const { least, processors } = needOf(work, 1);
      terminal.say(
        `No number of replicas is enough: one of them takes ${mib(least)} and ${
          processors.toFixed(2)
        } processors. Give it more memory, divide the objects by --split, or keep less of them (docs/sizing.md)\n`,
      );
      return Promise.resolve(1);
    }
    const need = needOf(work, replicas);
    const rows = {
      replicas: whole(replicas),
      "objects of each": whole(need.objects),
      "memory of each": need.whole <= memory
        ? `${mib(need.whole)}, nothing compressed`
        : `${mib(need.least)} to ${mib(memory)}, compressed in part`,
      "processors of each": need.processors.toFixed(2),
      "start of each": `${need.cold.toFixed(1)} s of processor time, ${
        need.warm.toFixed(1)
      } s with a snapshot`,
    };
    for (const [name, value] of Object.entries(rows)) {
      terminal.out(`${name.padEnd(20)}${value}\n`);
    }
    return Promise.resolve(0);
  },
};

const whole = (value: number) => value.toLocaleString("en-US");
const mib = (bytes: number) => `${whole(Math.ceil(bytes / MIB))} MiB`;

function numberOf(flags: FlagValues, name: string, usual: number): number {
  const text = textOf(flags, name);
  if (text === undefined) return usual;
  const value = /^\d{1,12}(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!Number.isNaN(value)) return value;
  throw new UsageError(
    `Cannot compute a size: --${name} must be a number: received "${text}"`,
  );
}

function sizeOf(flags: FlagValues, name: string, usual: string): number {
  const text = textOf(flags, name) ?? usual;
  const [, digits, unit] = /^(\d{1,9})(KiB|MiB|GiB)?$/.exec(text) ?? [];
  const factor = unit === undefined ? 1 : UNITS[unit as keyof typeof UNITS];
  if (digits !== undefined && Number(digits) > 0) {
    return Number(digits) * factor;
  }
  throw new UsageError(
    `Cannot compute a size: --${name} must be a size such as 512MiB: received "${text}"`,
  );
}
