/**
 * Prints what idle primaries hold in V8's heap, by the functions that allocated it,
 * and in arrays outside of it: `heap.ts [--objects N] [--sites N]`. All objects of a
 * list have run once, by a controller with all default options.
 *
 * @module
 */
import { Session } from "node:inspector/promises";
import process from "node:process";
import { commandLine } from "../tests/support/command_line.ts";
import { verify } from "./support/bench.ts";
import { collectGarbage } from "./support/sampling.ts";
import { Widget, widgetOperator } from "./support/widgets.ts";

const { integer } = commandLine("profile the heap", {
  objects: { type: "string", default: "1000000" },
  sites: { type: "string", default: "10" },
});
const objects = integer("objects", 1);
const shown = integer("sites", 1);

const operator = widgetOperator(objects);
let runs = 0;
const all = Promise.withResolvers<void>();
const controller = operator.register(Widget, {
  reconcile() {
    if (++runs === objects) all.resolve();
  },
});
const session = new Session();
session.connect();
collectGarbage();
const before = process.memoryUsage().arrayBuffers;
await session.post("HeapProfiler.startSampling", { samplingInterval: 8_192 });
await operator.start();
await all.promise;
await new Promise(setImmediate);
verify(controller.health().delayed === objects, "all objects must be idle");
collectGarbage();
const { profile } = await session.post("HeapProfiler.stopSampling");
const arrays = process.memoryUsage().arrayBuffers - before;

type Node = typeof profile.head;

/** Bytes by the function that allocated them, and its file. */
const sites = new Map<string, number>();

function collect({ callFrame, selfSize, children }: Node): void {
  const { functionName, url } = callFrame;
  const [file = ""] = /(?:core|bench)\/.*/.exec(url) ?? [];
  const site = `${functionName || "(anonymous)"} ${file}`;
  sites.set(site, (sites.get(site) ?? 0) + selfSize);
  children.forEach(collect);
}

function line(bytes: number, what: string): string {
  return `${(bytes / objects).toFixed(2).padStart(8)} ${what}\n`;
}

collect(profile.head);
const heap = [...sites.values()].reduce((sum, size) => sum + size, 0);
process.stdout.write(
  "Bytes an object\n" +
    line(arrays, "in arrays outside of V8's heap: bodies, keys, due times") +
    line(heap, "in V8's heap, of these allocated by") +
    [...sites].sort(([, a], [, b]) => b - a).slice(0, shown)
      .map(([site, size]) => line(size, `  ${site}`)).join(""),
);
await operator.stop();
