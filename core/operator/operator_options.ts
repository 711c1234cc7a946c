import type { Duration } from "../api/duration.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionTable,
  resolveOptions,
  type Settings,
  shown,
} from "../api/options.ts";
import { CLIENT_PARTS } from "../cache/informer/informer_options.ts";
import {
  SNAPSHOT_OPTIONS,
  type SnapshotOptions,
} from "../cache/snapshot/snapshot_options.ts";
import {
  RECONNECT_OPTIONS,
  type ReconnectOptions,
} from "../cache/watch/reconnect.ts";
import {
  WEBHOOK_HOST_RULES,
  WEBHOOK_SERVER_OPTIONS,
  type WebhookPlace,
  webhookPlace,
  type WebhookServerOptions,
} from "../admission/webhook_options.ts";
import type { Client } from "../client/client.ts";
import type { WebhookHost } from "../client/webhook_host.ts";
import { guardedRandom } from "../callback.ts";
import { host } from "../client/host.ts";
import { type Clock, systemClock } from "../clock.ts";
import {
  type Namespaces,
  NAMESPACES_OPTION,
} from "../controller/namespaces.ts";
import {
  checkRecordPlace,
  RECORD_OPTIONS,
  type RecordOptions,
  type RecordSettings,
} from "../controller/record/record_options.ts";
import {
  jsonLogger,
  type Logger,
  type LogLevel,
  unfailingLogger,
} from "../logger.ts";
import { type Metrics, unfailingMetrics } from "../metrics.ts";
import type { Tracer } from "../tracing.ts";
import {
  checkLeaseTimes,
  LEADER_ELECTION_OPTIONS,
  type LeaderElectionOptions,
  type LeaderElectionSettings,
  SHARDING_OPTIONS,
} from "./leader_election.ts";
import { LOG_OPTIONS, type LogOptionSettings } from "./log_configuration.ts";
import { MetricsRegistry } from "./metrics_registry.ts";
import {
  PROBE_OPTIONS,
  type ProbeOptions,
  type ProbeSettings,
} from "./probe_options.ts";

/**
 * Policy for a controller that cannot start: its kind is not served, a right is
 * missing, or its caches do not sync in time.
 *
 * - `"fail"`: the start fails, and everything that was started is stopped.
 * - `"wait"`: the error is logged and the other controllers start; the
 *   controller starts as soon as it can.
 */
export type StartErrorPolicy = "fail" | "wait";

/** Memory limits for the caches of an operator. */
export interface OperatorCacheOptions {
  /**
   * Memory budget for the bodies of all cached objects, in bytes or as text such
   * as `"96MiB"`. Objects beyond it are kept compressed; keys are always kept.
   * Defaults to a fraction of the memory available to the process.
   */
  readonly budget?: number | string | undefined;
  /**
   * Memory limit of the whole process, in bytes or as text such as `"512MiB"`;
   * `false` for no limit. When four fifths of it are in use and use still grows,
   * watches and lists are read more slowly; from nine tenths on, caches release
   * memory, down to an eighth of the budget. This reduces the risk of running
   * out of memory but does not exclude it: the memory of the program itself
   * counts as well. Defaults to the limit of the control group, if there is one.
   */
  readonly memoryLimit?: number | string | false | undefined;
  /**
   * Snapshots of the caches in files, for a warm start. Defaults to none: after a
   * restart everything is listed.
   */
  readonly snapshot?: SnapshotOptions | undefined;
}

/** Options as a file and the environment provide them. */
export type ConfiguredOptions = Readonly<Record<string, unknown>>;

/** Configuration from a file and the environment, read by `loadOperatorConfig`. */
export interface OperatorConfig {
  /** Options of the operator. */
  readonly operator: Readonly<Record<string, unknown>>;
  /** Options of controllers, by the name of the controller. */
  readonly controllers: Readonly<
    Record<string, Readonly<Record<string, unknown>>>
  >;
  /** Environment variables, which may contain options of controllers. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Options of an {@linkcode Operator}. */
export interface OperatorOptions {
  /**
   * Client for the cluster. Defaults to a new client from the kubeconfig or the
   * service account, which is closed when the operator stops.
   */
  readonly client?: Client | undefined;
  /**
   * Namespaces to watch, for controllers without namespaces of their own.
   *
   * @default {"all"}
   */
  readonly namespaces?: Namespaces | undefined;
  /**
   * Leader election: only one of several replicas runs the controllers, while
   * the caches of the others stay in sync so that they can take over quickly.
   * Defaults to no election.
   */
  readonly leaderElection?: LeaderElectionOptions | undefined;
  /**
   * Sharding: the objects are divided among all replicas and handed over when
   * replicas start and stop, so that no object runs in two replicas at the same
   * time. `name` is the name of the group and the prefix of its Leases,
   * `identity` the prefix of the member's name; each has at most 63 characters,
   * since they are labels as well. Cannot be combined with
   * `leaderElection`. Defaults to no sharding.
   */
  readonly sharding?: LeaderElectionOptions | undefined;
  /**
   * Maximum number of concurrent runs of all controllers together. Defaults to
   * no limit besides those of the controllers.
   */
  readonly concurrency?: number | undefined;
  /**
   * Metrics registry. Defaults to a `MetricsRegistry`, whose content
   * `operator.metrics()` returns.
   */
  readonly metrics?: Metrics | undefined;
  /** Logger. Defaults to JSON lines on standard error. */
  readonly logger?: Logger | undefined;
  /**
   * What a logger of `jsonLogger` writes; others have settings of their own. Each
   * option can be set by the environment, with or without `loadOperatorConfig`:
   * `CORACLE_OPERATOR_LOG_LEVEL=debug`. Where there are signals, SIGUSR2 switches to
   * the level `debug` while `operator.run()` runs, and the next one back.
   */
  readonly log?: {
    /** Least severe level that is written. Defaults to that of the logger. */
    readonly level?: LogLevel | undefined;
    /** Form of a line: JSON, or text. Defaults to that of the logger, JSON. */
    readonly format?: "json" | "text" | undefined;
    /**
     * Maximum number of lines with the same level and message in a second; what is
     * left out is counted. Defaults to no limit.
     */
    readonly sampling?: number | false | undefined;
    /**
     * Directory whose files `level`, `format` and `sampling` override these options,
     * such as a mounted ConfigMap. It is read every 5 seconds; files may be missing.
     * Defaults to no directory.
     */
    readonly directory?: string | undefined;
  } | undefined;
  /**
   * Tracer for runs, their phases and their requests: the `Tracer` of
   * `@opentelemetry/api`, which this library does not import. Defaults to no
   * tracing.
   */
  readonly tracer?: Tracer | undefined;
  /**
   * Server for `/healthz`, `/readyz` and `/metrics`. Defaults to no server.
   */
  readonly probes?: ProbeOptions | undefined;
  /**
   * Listener for the handlers of `operator.admit`: its address, how API servers
   * reach it, and its certificates. Tools that run the operator beside an API
   * server of their own give a host in its place. Needed with such handlers only.
   */
  readonly webhooks?: WebhookServerOptions | WebhookHost | undefined;
  /**
   * Programs that the operator runs, by their names or paths, such as `["helm"]` for
   * `fromCommand`: `coracle manifests` asks for their permissions on Deno, and says
   * that the image must have them.
   *
   * @default {[]}
   */
  readonly programs?: readonly string[] | undefined;
  /**
   * Grace period for runs when the operator stops; their signals abort at its
   * end.
   *
   * @default {"10s"}
   */
  readonly shutdownGrace?: Duration | undefined;
  /**
   * Policy for controllers that cannot start.
   *
   * @default {"fail"}
   */
  readonly startErrors?: "fail" | "wait" | undefined;
  /**
   * Time limit for the start of a controller: the server answers, and the
   * caches sync. The default is that of controller-runtime.
   *
   * @default {"2m"}
   */
  readonly syncTimeout?: Duration | undefined;
  /** Memory limits for the caches of all controllers. */
  readonly cache?: OperatorCacheOptions | undefined;
  /**
   * Recording of the last runs for `coracle replay`: what they read and wrote, with
   * times and causes, and without the values of Secrets. Defaults to none.
   */
  readonly record?: RecordOptions | undefined;
  /** Options for the connections of watches and their recovery. */
  readonly reconnect?: ReconnectOptions | undefined;
  /**
   * Configuration that `loadOperatorConfig` has read. It overrides the options
   * here and those of the controllers. Defaults to no configuration.
   */
  readonly config?: OperatorConfig | undefined;
  /**
   * Clock; a `VirtualClock` in tests.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Random number from 0 to below 1, for jitter.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

/** Options of an operator that stay undefined when they are left out. */
type Undefined =
  | "client"
  | "leaderElection"
  | "sharding"
  | "metrics"
  | "logger"
  | "tracer"
  | "probes"
  | "webhooks"
  | "record"
  | "config";

const CACHE_OPTIONS: OptionTable<
  OperatorCacheOptions,
  keyof OperatorCacheOptions
> = {
  budget: "bytes?",
  memoryLimit: { type: "bytes?", off: false },
  snapshot: { type: "object?", options: SNAPSHOT_OPTIONS },
};

export const OPERATOR_OPTIONS: OptionTable<OperatorOptions, Undefined> = {
  client: {
    type: "object?",
    check: (client, subject) =>
      checkParts(client, CLIENT_PARTS, `${subject}, client`),
  },
  namespaces: { ...NAMESPACES_OPTION, default: "all" },
  leaderElection: {
    type: "object?",
    options: LEADER_ELECTION_OPTIONS,
    check: checkLeaseTimes,
  },
  sharding: {
    type: "object?",
    options: SHARDING_OPTIONS,
    check: checkLeaseTimes,
  },
  concurrency: { type: "positive", default: Infinity },
  metrics: "metrics?",
  logger: "logger?",
  log: { type: "object", default: {}, options: LOG_OPTIONS },
  tracer: { type: "object?", check: checkTracer },
  probes: { type: "object?", options: PROBE_OPTIONS },
  webhooks: {
    type: "object?",
    options: WEBHOOK_SERVER_OPTIONS,
    custom: WEBHOOK_HOST_RULES,
  },
  programs: {
    type: "strings",
    default: [],
    configurable: false,
    check: (programs) =>
      programs.forEach((program) => {
        checkOption(program, "name", {
          name: "programs",
          subject: "an operator",
        });
        // Deno's flag lists them with commas, and a shell reads it.
        if (/^[\w./@:+\\][\w./@:+\\-]*$/.test(program)) return;
        throw new TypeError(
          `Cannot read the options of an operator: "programs" must be names or paths without blanks and commas: received ${
            shown(program)
          }`,
        );
      }),
  },
  shutdownGrace: { type: "duration", default: "10s" },
  startErrors: { type: ["fail", "wait"], default: "fail" },
  syncTimeout: { type: "duration", default: "2m" },
  cache: { type: "object", default: {}, options: CACHE_OPTIONS },
  record: {
    type: "object?",
    options: RECORD_OPTIONS,
    check: checkRecordPlace,
  },
  reconnect: { type: "object", default: {}, options: RECONNECT_OPTIONS },
  config: "object?",
  clock: { type: "clock", default: systemClock },
  random: { type: "function", default: Math.random },
};

/** Options of an operator, checked and with defaults; times in milliseconds. */
export interface OperatorSettings extends
  Omit<
    Settings<OperatorOptions, Undefined>,
    | "leaderElection"
    | "sharding"
    | "probes"
    | "webhooks"
    | "record"
    | "metrics"
    | "logger"
    | "log"
  > {
  readonly leaderElection: LeaderElectionSettings | undefined;
  readonly sharding: LeaderElectionSettings | undefined;
  readonly probes: ProbeSettings | undefined;
  readonly webhooks: WebhookPlace | undefined;
  readonly record: RecordSettings | undefined;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly log: LogOptionSettings;
}

/**
 * Checks the options of an operator and fills in the defaults.
 *
 * @param defaultLogger Logger for an operator without one.
 * @throws {TypeError | RangeError | SyntaxError} If an option is not valid; the
 * error names it.
 */
export function operatorSettings(
  options: OperatorOptions,
  defaultLogger: Logger | undefined,
): OperatorSettings {
  checkOptions(options, OPERATOR_OPTIONS, "an operator");
  const { clock, minWatchTimeout, random, webhooks } = host();
  const settings = resolveOptions({
    ...options,
    clock: options.clock ?? clock(),
    random: options.random ?? random,
    ...(minWatchTimeout !== undefined && {
      reconnect: { minWatchTimeout, ...options.reconnect },
    }),
  }, OPERATOR_OPTIONS);
  if (settings.leaderElection && settings.sharding) {
    throw new TypeError(
      'Cannot make an operator: with "sharding" every replica runs its part, so that there is no leader; leave out "leaderElection"',
    );
  }
  const { metrics = new MetricsRegistry() } = settings;
  // A tool calls the handlers itself, wherever the program would listen.
  const place = webhooks ?? options.webhooks;
  const logger = unfailingLogger(
    settings.logger ?? defaultLogger ?? jsonLogger(),
  );
  return {
    ...settings as OperatorSettings,
    webhooks: place && webhookPlace(place),
    random: guardedRandom(
      settings.random,
      (error) =>
        logger.error("Math.random is used instead of the option random", {
          error,
        }),
    ),
    // A MetricsRegistry never throws, and operator.metrics() needs it as it is.
    metrics: metrics instanceof MetricsRegistry
      ? metrics
      : unfailingMetrics(metrics),
    logger,
  };
}

function checkTracer(tracer: Tracer): void {
  if (typeof tracer.startActiveSpan === "function") return;
  throw new TypeError(
    `Cannot make an operator: "tracer" must have startActiveSpan(), as those of OpenTelemetry do: received ${typeof tracer}`,
  );
}
