import process from "node:process";
import { type ServerResponse, textResponse } from "./http/exchange.ts";
import type { RequestInfo } from "./request/request_info.ts";
import type { Store } from "./storage/store.ts";

/** Upper bounds of kube-apiserver's histogram buckets for durations, in seconds. */
const BOUNDS = [
  ...[0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5],
  ...[6, 8, 10, 15, 20, 30, 45, 60],
];

/** Metric series: requests with equal labels. */
interface Series {
  readonly labels: string;
  readonly code: number;
  count: number;
  /** Sum of the durations in seconds; unused for watches. */
  seconds: number;
  /** Number of durations in each bucket, not cumulative. */
  readonly buckets: number[] | undefined;
}

/** Metrics of requests, and the page `/metrics` in the text format of Prometheus. */
export class ServerMetrics {
  readonly #store: Store;
  readonly #startSeconds: number;
  readonly #series: Map<string, Series> = new Map();
  readonly #inflight = { mutating: 0, readOnly: 0 };

  /**
   * Creates metrics without requests.
   *
   * @param store Store whose objects are counted.
   * @param now Time of the server's start, in milliseconds since the Unix
   * epoch.
   */
  constructor(store: Store, now: number) {
    this.#store = store;
    this.#startSeconds = now / 1000;
  }

  /** Counts a request in flight: 1 when it begins, -1 when it ends. */
  flight(method: string, change: 1 | -1): void {
    const isRead = method === "GET" || method === "HEAD";
    this.#inflight[isRead ? "readOnly" : "mutating"] += change;
  }

  /**
   * Counts a response and its duration.
   *
   * @param verb Verb of the request, such as `list`.
   * @param info Target of the request.
   * @param answer Status of the response, and milliseconds until it was ready.
   */
  observe(
    verb: string,
    { resource, query }: RequestInfo,
    { status, duration }: {
      readonly status: number;
      readonly duration: number;
    },
  ): void {
    const { group = "", version = "", plural = "", subresource = "" } =
      resource ?? {};
    const scope = resource === undefined
      ? ""
      : resource.name !== undefined
      ? "resource"
      : resource.namespace === undefined
      ? "cluster"
      : "namespace";
    const dryRun = query.has("dryRun") ? "All" : "";
    const key =
      `${status} ${verb} ${group}/${version}/${plural}/${subresource}/${scope}/${dryRun}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      // Unknown paths and verbs must not create series without a bound.
      if (this.#series.size >= 10_000) return;
      const values = {
        component: "apiserver",
        dry_run: dryRun,
        group,
        resource: plural,
        scope,
        subresource,
        verb: METRIC_VERBS.get(verb) ?? verb.toUpperCase(),
        version,
      };
      series = {
        labels: labelText(values),
        code: status,
        count: 0,
        seconds: 0,
        buckets: verb === "watch" ? undefined : BOUNDS.map(() => 0),
      };
      this.#series.set(key, series);
    }
    series.count++;
    if (series.buckets === undefined) return;
    const seconds = duration / 1000;
    series.seconds += seconds;
    const bucket = BOUNDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  }

  /**
   * Answers `/metrics`.
   *
   * @param seats Seats of each priority level.
   */
  respond(
    seats: Iterable<readonly [level: string, seats: number]>,
  ): ServerResponse {
    const text = [...this.#lines(), ...seatLines(seats)].join("\n");
    return textResponse(200, `${text}\n`, {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
    });
  }

  *#lines(): Generator<string> {
    const all = [...this.#series.values()];
    yield* head("apiserver_request_total", "counter", "Number of requests.");
    for (const { labels, code, count } of all) {
      yield `apiserver_request_total{code="${code}",${labels}} ${count}`;
    }
    const duration = "apiserver_request_duration_seconds";
    yield* head(duration, "histogram", "Time until an answer, in seconds.");
    for (const [labels, series] of Map.groupBy(all, ({ labels }) => labels)) {
      if (series[0]?.buckets === undefined) continue;
      const count = sum(series.map(({ count }) => count));
      let below = 0;
      for (const [index, bound] of BOUNDS.entries()) {
        below += sum(series.map(({ buckets }) => buckets?.[index] ?? 0));
        yield `${duration}_bucket{${labels},le="${bound}"} ${below}`;
      }
      yield `${duration}_bucket{${labels},le="+Inf"} ${count}`;
      const seconds = sum(series.map(({ seconds }) => seconds));
      yield `${duration}_sum{${labels}} ${seconds}`;
      yield `${duration}_count{${labels}} ${count}`;
    }
    const inflight = "apiserver_current_inflight_requests";
    yield* head(inflight, "gauge", "Number of requests without an answer.");
    for (const [kind, count] of Object.entries(this.#inflight)) {
      yield `${inflight}{request_kind="${kind}"} ${count}`;
    }
    const objects = "apiserver_storage_objects";
    yield* head(objects, "gauge", "Number of stored objects by resource.");
    for (
      const { resource: { group, plural }, size } of this.#store.collections()
    ) {
      const name = group === "" ? plural : `${plural}.${group}`;
      yield `${objects}{resource="${name}"} ${size}`;
    }
    const { user, system } = process.cpuUsage();
    yield* single(
      "process_cpu_seconds_total",
      "counter",
      (user + system) / 1e6,
    );
    const { rss } = process.memoryUsage();
    yield* single("process_resident_memory_bytes", "gauge", rss);
    yield* single("process_start_time_seconds", "gauge", this.#startSeconds);
  }
}

const METRIC_VERBS: ReadonlyMap<string, string> = new Map([
  ["create", "POST"],
  ["update", "PUT"],
]);

function* seatLines(
  seats: Iterable<readonly [string, number]>,
): Generator<string> {
  const name = "apiserver_flowcontrol_nominal_limit_seats";
  yield* head(name, "gauge", "Number of seats of each priority level.");
  for (const [level, count] of seats) {
    yield `${name}{${labelText({ priority_level: level })}} ${count}`;
  }
}

function* head(name: string, type: string, help: string): Generator<string> {
  yield `# HELP ${name} ${help}`;
  yield `# TYPE ${name} ${type}`;
}

function* single(name: string, type: string, value: number): Generator<string> {
  yield* head(name, type, `${name.replaceAll("_", " ")} of this process.`);
  yield `${name} ${value}`;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([name, value]) =>
    `${name}=${JSON.stringify(value)}`
  ).join(",");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
