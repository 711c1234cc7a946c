import { digits } from "./digits.ts";
import type { Result } from "./bench.ts";

/**
 * Target of a measure, relative to other subjects of the same run or absolute.
 */
export interface Target {
  readonly bench: string;
  readonly subject: string;
  readonly unit: string;
  readonly limit: Limit;
}

/** Absolute number, or multiple of the same measure of another subject. */
export type Limit =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly atMostTimes: number; readonly of: string }
  | { readonly atLeastTimes: number; readonly of: string };

/** Result of checking a target. */
export interface Verdict {
  readonly target: Target;
  /** Text of the target, such as `≤ 1/8 of client-node`. */
  readonly text: string;
  readonly met: boolean;
  /** Factor by which the target is exceeded; below one if missed. */
  readonly margin: number;
}

/** Targets of measures of one subject, by unit. */
function targets(
  bench: string,
  subject: string,
  limits: Readonly<Record<string, Limit | readonly Limit[]>>,
): readonly Target[] {
  return Object.entries(limits).flatMap(([unit, limit]) =>
    [limit].flat().map((limit) => ({ bench, subject, unit, limit }))
  );
}

const atMost = (atMost: number): Limit => ({ atMost });
const atLeast = (atLeast: number): Limit => ({ atLeast });
const atMostTimes = (atMostTimes: number, of: string): Limit => ({
  atMostTimes,
  of,
});

const atLeastTimes = (atLeastTimes: number, of: string): Limit => ({
  atLeastTimes,
  of,
});

/** Targets of the project. */
export const TARGETS: readonly Target[] = [
  ...targets("scan", "coracle", {
    "µs/event": atMostTimes(1 / 8, "JSON.parse"),
  }),
  ...targets("watch-path", "coracle, 1 in 20 changes a spec", {
    "µs CPU/event": [
      atMostTimes(1 / 20, "client-node"),
      atMostTimes(1 / 5, "JSON.parse alone"),
    ],
  }),
  ...targets("events", "coracle", {
    "µs CPU/event": [
      atMostTimes(1 / 8, "client-node"),
      atMostTimes(1 / 20, "client-go"),
    ],
  }),
  ...targets("sync", "coracle, stream", {
    "µs CPU/object": [
      atMostTimes(1 / 5, "client-node"),
      atMostTimes(1, "client-go"),
    ],
    "µs/object": atMostTimes(1.3, "plain download"),
    "ms longest block": atMost(25),
    "MiB peak RSS": atMostTimes(1 / 6, "client-node"),
  }),
  ...targets("memory", "compressed, 50k", {
    "B body/object": atMost(400),
    "B index/object": atMost(64),
  }),
  ...targets("memory", "keys alone, 1M", { "MiB peak RSS": atMost(128) }),
  ...targets("memory", "operator, 1M", {
    "MiB peak RSS": atMost(512),
  }),
  ...targets("memory", "operator, 1M primaries", {
    "MiB peak RSS": atMost(360),
  }),
  ...targets("queue", "coracle", {
    "M operations/s": atLeast(5),
    "ns/operation": atMostTimes(1 / 3, "client-go"),
  }),
  ...targets("dispatch", "coracle", { "µs CPU/run": atMost(6) }),
  ...targets("idle", "coracle, 1000k", { "B/idle primary": atMost(16) }),
  ...targets("lru", "coracle", {
    "ns/hit": atMostTimes(1, "lru-cache, by size"),
  }),
  ...targets("workflow", "coracle", { "µs CPU/run": atMost(100) }),
  ...targets("reconcile", "coracle", {
    "µs CPU/reconcile": [
      atMostTimes(0.75, "controller-runtime"),
      atMostTimes(1, "JOSDK"),
      atMostTimes(1, "kube-rs"),
    ],
    "statuses/s in a storm": atLeastTimes(1.2, "controller-runtime"),
    "MiB peak RSS": atMost(110),
    "µs CPU of the server/reconcile": atMostTimes(1.2, "controller-runtime"),
    "ms p50": [
      atMostTimes(1, "client-node, by hand"),
      atMostTimes(1, "controller-runtime"),
    ],
    "ms p99": [
      atMostTimes(1, "client-node, by hand"),
      atMostTimes(1, "controller-runtime"),
    ],
  }),
  ...targets("startup", "coracle", {
    "ms CPU/import": atMost(60),
    "MiB RSS": atMost(65),
  }),
  ...targets("apiserver", "start and stop", { "ms/server": atMost(20) }),
  ...["http", "https"].flatMap((scheme) => [
    ...targets("apiserver", `${scheme} creates`, {
      "creates/s": atLeast(5_000),
    }),
    ...targets("apiserver", `${scheme} creates, 50 watches`, {
      "events/s": atLeast(50_000),
    }),
  ]),
  ...targets("apiserver", "100k Pods", { "MiB RSS": atMost(800) }),
];

/** Checks the targets for which a run has numbers. */
export function verdicts(results: readonly Result[]): readonly Verdict[] {
  const valueOf = ({ bench, unit }: Target, subject: string) =>
    results.find((result) =>
      result.bench === bench && result.unit === unit &&
      result.subject === subject
    )?.value;
  return TARGETS.flatMap((target) => {
    const { limit } = target;
    const value = valueOf(target, target.subject);
    const rival = "of" in limit ? valueOf(target, limit.of) : 1;
    if (value === undefined || rival === undefined) return [];
    const margin = marginOf(limit, value, rival);
    return [{ target, text: limitText(limit), met: margin >= 1, margin }];
  });
}

/** Factor by which a value exceeds a limit; of a rival's value, if it has one. */
function marginOf(limit: Limit, value: number, rival: number): number {
  if ("atLeast" in limit) return value / limit.atLeast;
  if ("atMost" in limit) return limit.atMost / value;
  return "atLeastTimes" in limit
    ? value / (limit.atLeastTimes * rival)
    : limit.atMostTimes * rival / value;
}

function limitText(limit: Limit): string {
  if ("atLeast" in limit) return `≥ ${digits(limit.atLeast)}`;
  if ("atMost" in limit) return `≤ ${digits(limit.atMost)}`;
  if ("atLeastTimes" in limit) {
    return `≥ ${digits(limit.atLeastTimes)} × ${limit.of}`;
  }
  const { atMostTimes, of } = limit;
  if (atMostTimes === 1) return `≤ ${of}`;
  return atMostTimes < 1 && Number.isInteger(1 / atMostTimes)
    ? `≤ 1/${digits(1 / atMostTimes)} of ${of}`
    : `≤ ${digits(atMostTimes)} × ${of}`;
}
