import type { Result } from "./bench.ts";

/** What `run.ts --json` writes. */
export interface Report {
  /** Such as `node 24.21.0`. */
  readonly runtime: string;
  /** Such as `2 cores, AMD EPYC 7B13`. */
  readonly machine: string;
  /** What gave it, such as `npm run bench`. */
  readonly command: string;
  readonly results: readonly Result[];
}

/** One measure of which everybody should know. */
export interface Headline {
  readonly bench: string;
  /** What is measured, for people who know no subject by its name. */
  readonly what: string;
  /** The unit among those of the bench, and how people read it. */
  readonly unit: string;
  readonly shortUnit: string;
  /** The subject that is Coracle's, and those beside it with a name for each. */
  readonly subject: string;
  readonly rivals: Readonly<Record<string, string>>;
}

const CLIENTS = { "client-node": "client-node", "client-go": "client-go" };

/** In the order in which they are shown. */
export const HEADLINES: readonly Headline[] = [
  {
    bench: "scan",
    what: "the header of a watch event of a real Pod (7 KB)",
    unit: "µs/event",
    shortUnit: "µs",
    subject: "coracle",
    rivals: { "JSON.parse": "JSON.parse" },
  },
  {
    bench: "watch-path",
    what: "a watch event from its bytes to the queue, where few make runs",
    unit: "µs CPU/event",
    shortUnit: "µs",
    subject: "coracle, 1 in 20 changes a spec",
    rivals: {
      "JSON.parse alone": "JSON.parse alone",
      "client-node": "client-node",
    },
  },
  {
    bench: "watch-path",
    what: "garbage of an event that nobody reads",
    unit: "B garbage/event",
    shortUnit: "B",
    subject: "coracle, none does",
    rivals: { "client-node": "client-node" },
  },
  {
    bench: "events",
    what: "CPU a watch event over HTTP from another process, all told",
    unit: "µs CPU/event",
    shortUnit: "µs",
    subject: "coracle",
    rivals: CLIENTS,
  },
  {
    bench: "sync",
    what: "CPU a Pod until 50,000 are in the cache, over TLS",
    unit: "µs CPU/object",
    shortUnit: "µs",
    subject: "coracle, stream",
    rivals: CLIENTS,
  },
  {
    bench: "sync",
    what: "the longest that the event loop stood still meanwhile",
    unit: "ms longest block",
    shortUnit: "ms",
    subject: "coracle, stream",
    rivals: { "client-node": "client-node" },
  },
  {
    bench: "sync",
    what: "peak memory meanwhile",
    unit: "MiB peak RSS",
    shortUnit: "MiB",
    subject: "coracle, stream",
    rivals: CLIENTS,
  },
  {
    bench: "memory",
    what: "memory of a Pod in a cache under a small budget",
    unit: "B/object",
    shortUnit: "B",
    subject: "compressed, 50k",
    rivals: { "Map of objects, 50k": "parsed objects" },
  },
  {
    bench: "memory",
    what: "peak memory with 1,000,000 Pods, 1,000 changes a second",
    unit: "MiB peak RSS",
    shortUnit: "MiB",
    subject: "operator, 1M",
    rivals: {},
  },
  {
    bench: "memory",
    what: "a read of any one of them meanwhile",
    unit: "µs/point read",
    shortUnit: "µs",
    subject: "operator, 1M",
    rivals: {},
  },
  {
    bench: "queue",
    what: "an operation of the queue, at a million keys",
    unit: "ns/operation",
    shortUnit: "ns",
    subject: "coracle",
    rivals: {
      "client-go": "client-go",
      "p-queue": "p-queue",
      "fastq": "fastq (no keys)",
    },
  },
  {
    bench: "dispatch",
    what: "a run that does nothing",
    unit: "µs CPU/run",
    shortUnit: "µs",
    subject: "coracle",
    rivals: {},
  },
  {
    bench: "workflow",
    what: "a run with ten dependents, all as they should be",
    unit: "µs CPU/run",
    shortUnit: "µs",
    subject: "coracle",
    rivals: {},
  },
  {
    bench: "lru",
    what: "a hit in a bounded cache",
    unit: "ns/hit",
    shortUnit: "ns",
    subject: "coracle",
    rivals: { "lru-cache, by size": "lru-cache" },
  },
  {
    bench: "reconcile",
    what: "from a create to its status, against a real API server, p50",
    unit: "ms p50",
    shortUnit: "ms",
    subject: "coracle",
    rivals: {
      "client-node, by hand": "client-node",
      "controller-runtime": "controller-runtime",
    },
  },
  {
    bench: "reconcile",
    what: "the same, p99",
    unit: "ms p99",
    shortUnit: "ms",
    subject: "coracle",
    rivals: {
      "client-node, by hand": "client-node",
      "controller-runtime": "controller-runtime",
    },
  },
  {
    bench: "startup",
    what: "importing it",
    unit: "ms CPU/import",
    shortUnit: "ms",
    subject: "coracle",
    rivals: { "client-node": "client-node" },
  },
  {
    bench: "startup",
    what: "memory once it is imported",
    unit: "MiB RSS",
    shortUnit: "MiB",
    subject: "coracle",
    rivals: { "client-node": "client-node" },
  },
];

/** A number with the name of whose it is. */
export interface Bar {
  readonly name: string;
  readonly value: number;
}

/** The numbers of a headline, Coracle's first; empty where it was not measured. */
export function barsOf(headline: Headline, report: Report): Bar[] {
  const { bench, unit, subject, rivals } = headline;
  const names = { [subject]: "Coracle", ...rivals };
  const bars = Object.entries(names).flatMap(([subject, name]) => {
    const found = report.results.find((result) =>
      result.bench === bench && result.unit === unit &&
      result.subject === subject
    );
    return found === undefined ? [] : [{ name, value: found.value }];
  });
  return bars[0]?.name === "Coracle" ? bars : [];
}
