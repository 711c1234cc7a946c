import { checkOptionNames } from "../api/option_names.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { KeyPair } from "./certificates.ts";
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
   * Whether to serve HTTPS, with a certificate of an own authority.
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

const OPTIONS: readonly string[] = [
  "port",
  "host",
  "tls",
  "token",
  "authority",
  "data",
  "audit",
  "clock",
  "seed",
  "history",
  "establishingDelay",
  "simulate",
  "pods",
  "logger",
];
const POD_HOOKS: readonly string[] = ["logs", "exec", "attach", "portForward"];

/**
 * Checks the options of a server.
 *
 * @throws {TypeError} If an option is not known, or is of another type.
 * @throws {RangeError} If a number is out of range.
 */
export function checkServerOptions(options: ApiServerOptions): void {
  checkOptionNames(options, OPTIONS, "an API server");
  const { pods = {} } = options;
  checkOptionNames(pods, POD_HOOKS, "an API server, pods");
  for (const [name, hook] of Object.entries(pods)) {
    if (hook === undefined || typeof hook === "function") continue;
    throw new TypeError(
      `Cannot start an API server: "pods.${name}" must be a function: received ${typeof hook}`,
    );
  }
  const { port = 0, establishingDelay = 0 } = options;
  if (!(establishingDelay >= 0)) {
    throw new RangeError(
      `Cannot start an API server: "establishingDelay" must be zero or more milliseconds: received ${establishingDelay}`,
    );
  }
  if (
    port !== false && (!Number.isInteger(port) || port < 0 || port > 65_535)
  ) {
    throw new RangeError(
      `Cannot start an API server: "port" must be false or from 0 to 65535: received ${port}`,
    );
  }
}
