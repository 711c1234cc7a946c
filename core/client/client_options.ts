import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../api/options.ts";
import { type Clock, systemClock } from "../clock.ts";
import { CLUSTER_RULES, type ClusterConfig } from "../config/cluster_config.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import {
  RATE_LIMIT_RULES,
  type RateLimitOptions,
  RETRY_OPTIONS,
  type RetryOptions,
} from "./middleware.ts";
import type { Transport } from "./transport/transport.ts";

/** Target of a {@linkcode Client}: the configuration of a cluster, or a transport. */
export type ClientTarget = ClusterConfig | {
  /** Transport that all requests are sent over. */
  readonly transport: Transport;
  /**
   * Value of `client.namespace`.
   *
   * @default {"default"}
   */
  readonly namespace?: string | undefined;
};

/** Options of a {@linkcode Client}. */
export interface ClientOptions {
  /**
   * Field manager of writes that do not name one themselves.
   *
   * @default {"coracle"}
   */
  readonly fieldManager?: string | undefined;
  /**
   * Value of the `user-agent` header.
   *
   * @default {"coracle"}
   */
  readonly userAgent?: string | undefined;
  /**
   * Retries of requests that the server throttled (429, or 503 with
   * Retry-After) and of reads whose connection failed; `false` disables them.
   * By default up to 10 attempts with delays from 100 ms to 30 s.
   */
  readonly retry?: RetryOptions | false | undefined;
  /**
   * Client-side limit on the request rate; unlimited by default, because the
   * server limits by priority and fairness.
   */
  readonly rateLimit?: RateLimitOptions | undefined;
  /**
   * Maximum time until a response begins, and between two of its chunks, in
   * milliseconds. Watches and followed logs are exempt once they have begun.
   *
   * @default {90_000}
   */
  readonly responseTimeout?: number | undefined;
  /**
   * Maximum size of a response that is decoded as one JSON document, in bytes
   * (256 MiB by default). Watches and logs have no limit.
   *
   * @default {268_435_456}
   */
  readonly maxResponseBytes?: number | undefined;
  /**
   * Logger for retries, for warnings of the API server and of the
   * configuration. Nothing is logged by default.
   */
  readonly logger?: Logger | undefined;
  /**
   * Function that sends all requests in place of sockets, for runtimes that have
   * none. It decides on connections and certificates, so that the cluster's
   * configuration must have no TLS options and no proxy. It may send a request a
   * moment after the last check of leadership, and may repeat a write whose
   * connection broke; WebSockets (exec, attach, port forwarding) are not available.
   */
  readonly fetch?: typeof fetch | undefined;
  /** Metrics that count and time requests. Disabled by default. */
  readonly metrics?: Metrics | undefined;
  /**
   * Source of time for timeouts and delays.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Random numbers from 0 to below 1, for the jitter of retries.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

/** Names of the client options without a default. */
type Undefined = "retry" | "rateLimit" | "logger" | "fetch" | "metrics";

const CLIENT_OPTIONS: OptionTable<ClientOptions, Undefined> = {
  fieldManager: { type: "manager", default: "coracle" },
  userAgent: { type: "name", default: "coracle" },
  retry: {
    type: "object",
    default: {},
    off: undefined,
    options: RETRY_OPTIONS,
  },
  rateLimit: { type: "object?", options: RATE_LIMIT_RULES },
  responseTimeout: { type: "positive", default: 90_000 },
  maxResponseBytes: { type: "count", default: 256 << 20 },
  logger: "logger?",
  fetch: "function?",
  metrics: "metrics?",
  clock: { type: "clock", default: systemClock },
  random: { type: "function", default: Math.random },
};

/** Options of a client with their defaults; `retry` is undefined if disabled. */
export type ClientSettings = Settings<ClientOptions, Undefined>;

const TARGET_RULES: OptionRules<Exclude<ClientTarget, ClusterConfig>> = {
  transport: "object",
  namespace: "string?",
};

const TRANSPORT_RULES: OptionRules<Transport> = {
  send: "function",
  connect: "function?",
  ended: "signal?",
  close: "function",
};

/**
 * Validates the arguments of the constructor of a {@linkcode Client} and fills in
 * the defaults of the options.
 *
 * @throws {TypeError | RangeError} If an option is unknown, of the wrong type or
 * out of range.
 */
export function clientSettings(
  target: ClientTarget,
  options: ClientOptions,
): ClientSettings {
  checkOption(target, "object", { name: "target", subject: "a client" });
  if ("transport" in target) {
    checkOptions(target, TARGET_RULES, "a client, target");
    checkParts(target.transport, TRANSPORT_RULES, "a client, transport");
  } else checkOptions(target, CLUSTER_RULES, "a client, target");
  checkOptions(options, CLIENT_OPTIONS, "a client");
  return resolveOptions(options, CLIENT_OPTIONS);
}
