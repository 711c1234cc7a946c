import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, checkParts, type OptionRules } from "../api/options.ts";
import { parseByteSize } from "../api/byte_size.ts";
import { CLIENT_PARTS } from "../cache/informer/informer_check.ts";
import { reconnectSettings } from "../cache/watch/reconnect_settings.ts";
import type { ReconnectOptions } from "../cache/informer/informer_options.ts";
import type { Client } from "../client/client.ts";
import { type Clock, systemClock } from "../clock.ts";
import {
  checkNamespaces,
  NAMESPACE_WORDS,
  type Namespaces,
} from "../controller/namespaces.ts";
import { jsonLogger, type Logger, unfailingLogger } from "../logger.ts";
import { type Metrics, unfailingMetrics } from "../metrics.ts";
import type { Tracer } from "../tracing.ts";
import { type LeaderElectionOptions, leaseTimes } from "./leader_election.ts";
import { MetricsRegistry } from "./metrics_registry.ts";
import { configuredOperator, type OperatorConfig } from "./operator_config.ts";
import type { ProbeOptions } from "./probe_server.ts";

/**
 * What happens when a controller cannot start: its kind is not served, a right
 * is missing, or its caches do not fill in time.
 *
 * - `"fail"`: the start fails, and everything that was started is stopped.
 * - `"wait"`: it is logged; the others start, and the controller does as soon as
 *   it can.
 */
export type StartErrorPolicy = "fail" | "wait";

/** How much memory the caches of an operator may use. */
export interface OperatorCacheOptions {
  /**
   * The bytes for the bodies of all cached objects, as a number or as text such
   * as `"96MiB"`. What does not fit is kept compressed; keys always stay.
   *
   * @default {a fraction of the memory that the process may use}
   */
  readonly budget?: number | string | undefined;
  /**
   * What the whole process may use, in bytes or as text such as `"512MiB"`;
   * `false` for as much as it likes. From four fifths of it on, while its use
   * still grows, what arrives is read slowly, and from nine tenths on caches give
   * up some of what they hold, down to an eighth of it. That is a brake, not a
   * guarantee: what the program itself makes counts, too.
   *
   * @default {the limit of the control group, if it has one}
   */
  readonly memoryLimit?: number | string | false | undefined;
}

/** Options of an {@linkcode Operator}. */
export interface OperatorOptions {
  /**
   * The cluster. The operator closes a client that it made itself.
   *
   * @default {as the kubeconfig or the service account says}
   */
  readonly client?: Client | undefined;
  /**
   * The namespaces of controllers that name none.
   *
   * @default {"all"}
   */
  readonly namespaces?: Namespaces | undefined;
  /**
   * Runs on one of several replicas only; the others stand by with warm caches.
   *
   * @default {every replica runs}
   */
  readonly leaderElection?: LeaderElectionOptions | undefined;
  /**
   * Shares the objects among all replicas, and hands them over when replicas come
   * and go, such that no object runs in two of them: `name` is that of the group,
   * and begins the names of its Leases; `identity` begins the name of the member.
   * Not together with `leaderElection`.
   *
   * @default {every replica runs all objects}
   */
  readonly sharding?: LeaderElectionOptions | undefined;
  /**
   * How many runs there may be at once, over all controllers.
   *
   * @default {no limit beside those of the controllers}
   */
  readonly concurrency?: number | undefined;
  /**
   * Where the operator counts.
   *
   * @default {a registry of its own, told by `operator.metrics()`}
   */
  readonly metrics?: Metrics | undefined;
  /**
   * Where the operator logs.
   *
   * @default {JSON lines on standard error}
   */
  readonly logger?: Logger | undefined;
  /**
   * Traces runs, their phases and their requests: the `Tracer` of an application
   * that has `@opentelemetry/api`, which this library does not import.
   *
   * @default {nothing is traced}
   */
  readonly tracer?: Tracer | undefined;
  /**
   * Serves `/healthz`, `/readyz` and `/metrics`.
   *
   * @default {not at all}
   */
  readonly probes?: ProbeOptions | undefined;
  /**
   * How long runs may go on when the operator stops; then their signals fire.
   *
   * @default {"10s"}
   */
  readonly shutdownGrace?: Duration | undefined;
  /**
   * What happens when a controller cannot start.
   *
   * @default {"fail"}
   */
  readonly startErrors?: StartErrorPolicy | undefined;
  /**
   * How long the caches of a controller may take to fill at start; the default is
   * that of controller-runtime.
   *
   * @default {"2m"}
   */
  readonly syncTimeout?: Duration | undefined;
  /**
   * How much memory the caches of all controllers may use.
   *
   * @default {a fraction of what the process may use}
   */
  readonly cache?: OperatorCacheOptions | undefined;
  /**
   * How informers connect and recover.
   *
   * @default {as ReconnectOptions says}
   */
  readonly reconnect?: ReconnectOptions | undefined;
  /**
   * What `loadOperatorConfig` has read: it counts more than the options here and
   * those of the controllers.
   *
   * @default {none}
   */
  readonly config?: OperatorConfig | undefined;
  /**
   * Where time comes from; a `VirtualClock` in tests.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Gives a number from 0 to below 1, for jitter.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

/** The options of an operator, checked and with defaults. */
export interface OperatorSettings {
  readonly client: Client | undefined;
  readonly namespaces: Namespaces;
  readonly leaderElection: LeaderElectionOptions | undefined;
  readonly sharding: LeaderElectionOptions | undefined;
  readonly concurrency: number;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly tracer: Tracer | undefined;
  readonly probes: ProbeOptions | undefined;
  /** Milliseconds. */
  readonly shutdownGrace: number;
  readonly startErrors: StartErrorPolicy;
  /** Milliseconds. */
  readonly syncTimeout: number;
  readonly cache: OperatorCacheOptions;
  readonly reconnect: ReconnectOptions;
  readonly config: OperatorConfig | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

const RULES: OptionRules<OperatorOptions> = {
  client: "object?",
  namespaces: "any?",
  leaderElection: "object?",
  sharding: "object?",
  concurrency: "positive?",
  metrics: "metrics?",
  logger: "logger?",
  tracer: "object?",
  probes: "object?",
  shutdownGrace: "duration?",
  startErrors: ["fail", "wait", undefined],
  syncTimeout: "duration?",
  cache: "object?",
  reconnect: "object?",
  config: "object?",
  clock: "clock?",
  random: "function?",
};
const PROBE_RULES: OptionRules<ProbeOptions> = {
  port: "port",
  host: "name?",
  debug: "boolean?",
  live: "function?",
};
const CACHE_RULES: OptionRules<OperatorCacheOptions> = {
  budget: "any?",
  memoryLimit: "any?",
};

/**
 * Checks the options of an operator and fills in the defaults.
 *
 * @throws {TypeError | RangeError | SyntaxError} If anything makes no sense,
 * naming it.
 */
export function operatorSettings(
  given: OperatorOptions,
  defaultLogger: Logger | undefined,
): OperatorSettings {
  checkOptions(given, RULES, "an operator");
  const options = configuredOperator(given);
  const { startErrors = "fail", probes, cache = {}, tracer } = options;
  const { client, namespaces = "all" } = options;
  if (client !== undefined) {
    checkParts(client, CLIENT_PARTS, "an operator, client");
  }
  checkNamespaces(namespaces, NAMESPACE_WORDS, "an operator");
  if (tracer !== undefined && typeof tracer?.startActiveSpan !== "function") {
    throw new TypeError(
      `Cannot make an operator: "tracer" must have startActiveSpan(), as those of OpenTelemetry do: received ${typeof tracer}`,
    );
  }
  if (probes !== undefined) {
    checkOptions(probes, PROBE_RULES, "an operator, probes");
  }
  checkOptions(cache, CACHE_RULES, "an operator, cache");
  const { budget, memoryLimit = false } = cache;
  if (budget !== undefined) parseByteSize(budget);
  if (memoryLimit !== false) parseByteSize(memoryLimit);
  reconnectSettings(options.reconnect);
  const { leaderElection, sharding } = options;
  if (leaderElection !== undefined) leaseTimes(leaderElection);
  if (sharding !== undefined) leaseTimes(sharding);
  if (leaderElection !== undefined && sharding !== undefined) {
    throw new TypeError(
      'Cannot make an operator: with "sharding" every replica runs its part, so that there is no leader: received both',
    );
  }
  return {
    client,
    namespaces,
    leaderElection: options.leaderElection,
    sharding: options.sharding,
    concurrency: options.concurrency ?? Infinity,
    metrics: coveredMetrics(options.metrics),
    logger: unfailingLogger(options.logger ?? defaultLogger ?? jsonLogger()),
    tracer,
    probes,
    shutdownGrace: milliseconds(
      options.shutdownGrace ?? "10s",
      "shutdownGrace",
    ),
    startErrors,
    syncTimeout: milliseconds(options.syncTimeout ?? "2m", "syncTimeout"),
    cache,
    reconnect: options.reconnect ?? {},
    config: options.config,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  };
}

/** Our own never throw, and are told by the operator. */
function coveredMetrics(metrics: Metrics = new MetricsRegistry()): Metrics {
  return metrics instanceof MetricsRegistry
    ? metrics
    : unfailingMetrics(metrics);
}
