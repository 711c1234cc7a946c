import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/option_rules.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { KeyPair } from "./certificates.ts";
import type { FeatureGates } from "./feature_gates.ts";
import type { PodHooks } from "./pods/pod_hooks.ts";
import type { AuditEvent } from "./request_handler.ts";
import type { HistoryLimits } from "./storage/history.ts";

/** Options of an embedded API server. */
export interface ApiServerOptions {
  /**
   * The port to listen on; 0 for any that is free. `false` opens no socket: the
   * server is then only reached by its `transport` and `client`.
   *
   * @default {0}
   */
  readonly port?: number | false | undefined;
  /**
   * The address to listen on.
   *
   * @default {"127.0.0.1"}
   */
  readonly host?: string | undefined;
  /**
   * Whether to serve HTTPS, with a certificate of an own authority. kubectl and
   * other Go clients send the token of their kubeconfig over nothing else.
   *
   * @default {true}
   */
  readonly tls?: boolean | undefined;
  /**
   * The bearer token that may do everything.
   *
   * @default {a random one}
   */
  readonly token?: string | undefined;
  /**
   * Who vouches for the server's certificate. Given again, a server that starts
   * anew is the same to its clients.
   *
   * @default {a new authority}
   */
  readonly authority?: KeyPair | undefined;
  /**
   * A file that keeps all objects over restarts.
   *
   * @default {undefined, which keeps them in memory only}
   */
  readonly data?: string | undefined;
  /**
   * Is told of every request and the status of its answer.
   *
   * @default {nobody is told}
   */
  readonly audit?: ((event: AuditEvent) => void) | undefined;
  /**
   * Where the server's time comes from: timeouts, bookmarks, faults, and the
   * timestamps in objects.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Makes uids, generated names and faults the same in every run.
   *
   * @default {a random one}
   */
  readonly seed?: number | undefined;
  /**
   * How much of the past each resource remembers, for watches that resume and
   * lists at a past revision.
   *
   * @default {{ changes: 10_000, bytes: 33_554_432 }}
   */
  readonly history?: HistoryLimits | undefined;
  /**
   * How long a new CRD takes to be established and served, in milliseconds. A
   * real server takes up to some hundreds, so that clients that do not wait fail.
   *
   * @default {250}
   */
  readonly establishingDelay?: number | undefined;
  /**
   * Whether Deployments and StatefulSets become ready by themselves, half a
   * second after each change, since nothing runs pods.
   *
   * @default {false}
   */
  readonly simulate?: boolean | undefined;
  /**
   * What the server can do beyond its version.
   *
   * @default {nothing}
   */
  readonly featureGates?: FeatureGates | undefined;
  /**
   * What runs in pods: logs, programs and ports.
   *
   * @default {nothing, as on a cluster whose nodes are gone}
   */
  readonly pods?: PodHooks | undefined;
  /**
   * Where the server tells what it could not do.
   *
   * @default {nowhere}
   */
  readonly logger?: Logger | undefined;
}

const RULES: OptionRules<ApiServerOptions> = {
  port: "any?",
  host: "name?",
  tls: "boolean?",
  token: "name?",
  authority: "object?",
  data: "name?",
  audit: "function?",
  clock: "clock?",
  seed: "number?",
  history: "object?",
  establishingDelay: "number?",
  simulate: "boolean?",
  featureGates: "object?",
  pods: "object?",
  logger: "logger?",
};
const HISTORY_RULES: OptionRules<HistoryLimits> = {
  changes: "size",
  bytes: "size",
};
const GATE_RULES: OptionRules<
  NonNullable<ApiServerOptions["featureGates"]>
> = { ShardedListAndWatch: "boolean?" };
const POD_RULES: OptionRules<PodHooks> = {
  logs: "function?",
  exec: "function?",
  attach: "function?",
  portForward: "function?",
};

/**
 * Checks the options of a server.
 *
 * @throws {TypeError} If an option is not known, or is of another type.
 * @throws {RangeError} If a number is out of range.
 */
export function checkServerOptions(options: ApiServerOptions): void {
  const subject = "an API server";
  checkOptions(options, RULES, subject);
  const { pods = {}, featureGates = {}, history, port, establishingDelay = 0 } =
    options;
  checkOptions(featureGates, GATE_RULES, `${subject}, featureGates`);
  checkOptions(pods, POD_RULES, `${subject}, pods`);
  if (history !== undefined) {
    checkOptions(history, HISTORY_RULES, `${subject}, history`);
  }
  if (port !== false) checkOption(port, "port?", { name: "port", subject });
  if (!(establishingDelay >= 0)) {
    throw new RangeError(
      `Cannot start an API server: "establishingDelay" must be zero or more milliseconds: received ${establishingDelay}`,
    );
  }
}
