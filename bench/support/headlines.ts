import type { Remark, Result } from "./bench.ts";

/** Report of a run, as `run.ts --json` writes it. */
export interface Report {
  /** Runtime, such as `node 24.21.0`. */
  readonly runtime: string;
  /** Machine, such as `2 cores, AMD EPYC 7B13`. */
  readonly machine: string;
  /** Command that produced the report, such as `npm run bench`. */
  readonly command: string;
  readonly results: readonly Result[];
  /** Remarks about subjects that have some. */
  readonly remarks?: readonly Remark[] | undefined;
  /** Runs that the results are from, the latest last; by default one. */
  readonly runs?: readonly BenchRun[] | undefined;
}

/** One run of benches. */
export interface BenchRun
  extends Pick<Report, "runtime" | "machine" | "command"> {
  readonly benches: readonly string[];
}

/** Runs that the results of a report are from. */
export function runsOf(report: Report): readonly BenchRun[] {
  const { runtime, machine, command, results } = report;
  const benches = [...new Set(results.map(({ bench }) => bench))];
  return report.runs ?? [{ runtime, machine, command, benches }];
}

/** Machines on which benches were measured. */
export function machinesOf(
  report: Report,
  benches: readonly string[],
): string {
  const runs = runsOf(report).filter((run) =>
    run.benches.some((bench) => benches.includes(bench))
  );
  return [...new Set(runs.map(({ machine }) => machine))].join(" and ");
}

/** Measure that the guide shows. */
export interface Headline {
  readonly bench: string;
  /** Description of the measure for readers of the guide. */
  readonly what: string;
  /** Unit of the bench, and unit for readers. */
  readonly unit: string;
  readonly shortUnit: string;
  /** Coracle's subject, and the rivals with their names. */
  readonly subject: string;
  readonly rivals: Readonly<Record<string, string>>;
}

const CLIENTS = {
  "client-node": "client-node",
  "client-go": "client-go",
  "fabric8": "fabric8",
  "kube-rs": "kube-rs",
};

const OPERATORS = {
  "client-node, by hand": "client-node",
  "controller-runtime": "controller-runtime",
  "JOSDK": "JOSDK",
  "kube-rs": "kube-rs",
  "bare watch and PATCH": "a bare watch and PATCH",
};

/** Measures of the guide, in order. */
export const HEADLINES: readonly Headline[] = [
  {
    bench: "scan",
    what: "scan of a watch event of a real Pod (7 KB)",
    unit: "µs/event",
    shortUnit: "µs",
    subject: "coracle",
    rivals: { "JSON.parse": "JSON.parse" },
  },
  {
    bench: "watch-path",
    what: "a watch event from bytes to queue, when 1 in 20 causes a run",
    unit: "µs CPU/event",
    shortUnit: "µs",
    subject: "coracle, 1 in 20 changes a spec",
    rivals: {
      "JSON.parse alone": "JSON.parse alone",
      "client-node": "client-node",
      "scan alone, 1 in 20 parsed": "scan alone",
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
    what: "CPU per watch event over HTTP from another process, in total",
    unit: "µs CPU/event",
    shortUnit: "µs",
    subject: "coracle",
    rivals: { ...CLIENTS, "lines counted": "node:http alone" },
  },
  {
    bench: "sync",
    what: "CPU per Pod for a sync of 50,000 over TLS",
    unit: "µs CPU/object",
    shortUnit: "µs",
    subject: "coracle, stream",
    rivals: CLIENTS,
  },
  {
    bench: "sync",
    what: "longest event-loop block during the sync",
    unit: "ms longest block",
    shortUnit: "ms",
    subject: "coracle, stream",
    rivals: { "client-node": "client-node" },
  },
  {
    bench: "sync",
    what: "peak memory during the sync",
    unit: "MiB peak RSS",
    shortUnit: "MiB",
    subject: "coracle, stream",
    rivals: CLIENTS,
  },
  {
    bench: "memory",
    what: "memory per Pod in a cache with a small budget",
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
    what: "the same as primaries, with all default options",
    unit: "MiB peak RSS",
    shortUnit: "MiB",
    subject: "operator, 1M primaries",
    rivals: {},
  },
  {
    bench: "memory",
    what: "read of a random one of them during the changes",
    unit: "µs/point read",
    shortUnit: "µs",
    subject: "operator, 1M",
    rivals: {},
  },
  {
    bench: "queue",
    what: "queue operation, with a million keys",
    unit: "ns/operation",
    shortUnit: "ns",
    subject: "coracle",
    rivals: {
      "client-go": "client-go",
      "p-queue": "p-queue",
      "fastq": "fastq (no keys)",
      "Map alone": "a Map alone",
    },
  },
  {
    bench: "dispatch",
    what: "run that does nothing",
    unit: "µs CPU/run",
    shortUnit: "µs",
    subject: "coracle",
    rivals: {},
  },
  {
    bench: "workflow",
    what: "run with ten unchanged dependents",
    unit: "µs CPU/run",
    shortUnit: "µs",
    subject: "coracle",
    rivals: {},
  },
  {
    bench: "lru",
    what: "hit in a bounded cache",
    unit: "ns/hit",
    shortUnit: "ns",
    subject: "coracle",
    rivals: { "lru-cache, by size": "lru-cache" },
  },
  {
    bench: "reconcile",
    what: "CPU of the operator per reconcile that writes a status",
    unit: "µs CPU/reconcile",
    shortUnit: "µs",
    subject: "coracle",
    rivals: OPERATORS,
  },
  {
    bench: "reconcile",
    what: "event to status, against a real API server, p50",
    unit: "ms p50",
    shortUnit: "ms",
    subject: "coracle",
    rivals: OPERATORS,
  },
  {
    bench: "reconcile",
    what: "event to status, p99",
    unit: "ms p99",
    shortUnit: "ms",
    subject: "coracle",
    rivals: OPERATORS,
  },
  {
    bench: "startup",
    what: "import of the package",
    unit: "ms CPU/import",
    shortUnit: "ms",
    subject: "coracle",
    rivals: { "client-node": "client-node" },
  },
  {
    bench: "startup",
    what: "memory after the import",
    unit: "MiB RSS",
    shortUnit: "MiB",
    subject: "coracle",
    rivals: { "client-node": "client-node" },
  },
];

/** Value with the name of its subject. */
export interface Bar {
  readonly name: string;
  readonly value: number;
}

/** Values of a headline, Coracle's first; empty if it was not measured. */
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
