import type { Clock, Logger } from "@coracle/operator/client";
import {
  checkOption,
  checkOptions,
  type KeyPair,
  type OptionRules,
} from "@coracle/operator/internal";
import { controllerSwitch } from "./controllers/controller_names.ts";
import type { FeatureGates } from "./feature_gates.ts";
import { type KubernetesVersion, RELEASES } from "./kubernetes_release.ts";
import type { PodHooks } from "./pods/pod_hooks.ts";
import type { AuditEvent } from "./request_handler.ts";
import type { HistoryLimits } from "./storage/history.ts";

/** Options of {@linkcode ApiServer.start}. */
export interface ApiServerOptions {
  /**
   * Port to listen on; 0 selects any free port. `false` opens no socket: only
   * its `transport` and `client` reach the server.
   *
   * @default {0}
   */
  readonly port?: number | false | undefined;
  /**
   * Address to listen on.
   *
   * @default {"127.0.0.1"}
   */
  readonly host?: string | undefined;
  /**
   * Whether to serve HTTPS, with a certificate of the server's own authority.
   * kubectl and other Go clients send a bearer token over HTTPS only.
   *
   * @default {true}
   */
  readonly tls?: boolean | undefined;
  /**
   * Whether to offer HTTP/2 over TLS, as kube-apiserver does; HTTP/1.1 is always
   * served. On Bun and Deno the default is false: the HTTP/2 of Bun 1.4 loses resets
   * of streams, and that of Deno 2.9 may abort the process at a GOAWAY.
   *
   * @default {true}
   */
  readonly http2?: boolean | undefined;
  /** Bearer token with all rights; random by default. */
  readonly token?: string | undefined;
  /**
   * Further users with bearer tokens. Their rights are those of their roles;
   * users in the group `system:masters` have all rights.
   *
   * @default {[]}
   */
  readonly users?:
    | readonly {
      /** User name. */
      readonly name: string;
      /** Groups of the user, in addition to `system:authenticated`. */
      readonly groups?: readonly string[] | undefined;
      /** Bearer token. */
      readonly token: string;
      /** UID of the user. */
      readonly uid?: string | undefined;
    }[]
    | undefined;
  /**
   * Authorization of users: by roles and their bindings (`"rbac"`), or all
   * rights for every user (`"none"`). The holder of the server's token always
   * has all rights.
   *
   * @default {"rbac"}
   */
  readonly authorization?: "none" | "rbac" | undefined;
  /**
   * Certificate authority of the server, by default a new one. With the same
   * authority and token, a restarted server accepts the same kubeconfig.
   */
  readonly authority?: KeyPair | undefined;
  /**
   * Certificate that the server presents; by default signed by `authority` for
   * the loopback addresses and `host`.
   */
  readonly serving?: KeyPair | undefined;
  /**
   * Certificates, in PEM, of the authorities that sign client certificates of
   * users; by default that of `authority`.
   */
  readonly clientAuthorities?: string | undefined;
  /** Tokens of service accounts, like the flags `--service-account-*`. */
  readonly serviceAccounts?:
    | {
      /**
       * Issuers whose tokens are accepted; the first issues new tokens.
       *
       * @default {["https://kubernetes.default.svc"]}
       */
      readonly issuers?: readonly string[] | undefined;
      /** Audiences of the server; the first issuer by default. */
      readonly audiences?: readonly string[] | undefined;
      /** Private key that signs tokens, in PEM; by default that of `authority`. */
      readonly signingKey?: string | undefined;
      /** Keys or certificates that verify tokens, in PEM; by default `signingKey`. */
      readonly keys?: readonly string[] | undefined;
    }
    | undefined;
  /**
   * Names of admission plug-ins that are switched off, as in kube-apiserver.
   *
   * @default {[]}
   */
  readonly disabledAdmission?: readonly string[] | undefined;
  /**
   * File that persists all objects over restarts. By default objects are in
   * memory only.
   */
  readonly data?: string | undefined;
  /** Callback for every request, with the status of its response. */
  readonly audit?: ((event: AuditEvent) => void) | undefined;
  /**
   * Clock of the server, for timeouts, bookmarks, faults, and timestamps in
   * objects. Defaults to the system clock.
   */
  readonly clock?: Clock | undefined;
  /**
   * Whether watches get a bookmark every minute, as those of kube-apiserver.
   * Without them an idle watch costs nothing on a virtual clock; the bookmark
   * that ends initial events is always sent, and one to a watch from a later
   * revision than that of the server, which has lost its data.
   *
   * @default {true}
   */
  readonly bookmarks?: boolean | undefined;
  /**
   * Seed of UIDs, generated names and faults, for reproducible runs; random by
   * default.
   */
  readonly seed?: number | undefined;
  /**
   * Limits of each resource's history, for watches that resume and lists at a
   * past revision.
   *
   * @default {{ changes: 10_000, bytes: 33_554_432 }}
   */
  readonly history?:
    | {
      /** Maximum number of changes. */
      readonly changes: number;
      /** Maximum bytes of past objects. */
      readonly bytes: number;
    }
    | undefined;
  /**
   * Delay until a new CRD is established and served, in milliseconds. A real
   * server takes tens of milliseconds, so clients that do not wait may fail.
   *
   * @default {10}
   */
  readonly establishingDelay?: number | undefined;
  /**
   * Controllers that run, named as in the flag `--controllers` of
   * kube-controller-manager: `*` stands for all, and `-` before a name switches
   * one off. Without controllers, only custom resource definitions are
   * reconciled. By default those of workloads (Deployments, Jobs, …) run only
   * with `simulate`, so that tests can write the status of workloads
   * themselves.
   */
  readonly controllers?: readonly string[] | undefined;
  /**
   * Whether pods run on simulated nodes: they are bound, become ready half a
   * second later, and restart or finish as the hook `pods.run` determines.
   * Without nodes pods stay pending.
   *
   * @default {false}
   */
  readonly simulate?: boolean | {
    /**
     * Number of nodes that are created in a store without nodes.
     *
     * @default {1}
     */
    readonly nodes?: number | undefined;
  } | undefined;
  /**
   * Minor version of Kubernetes whose resources and fields the server has, and
   * which `/version` tells. Fields that it does not know are dropped as unknown
   * ones. Other answers are those of the newest version.
   *
   * @default {"1.37"}
   */
  readonly version?: KubernetesVersion | undefined;
  /** Feature gates; all are off by default. */
  readonly featureGates?: FeatureGates | undefined;
  /**
   * Hooks for logs, programs and ports of pods. Without hooks these requests
   * fail as in a cluster with unreachable nodes.
   */
  readonly pods?: PodHooks | undefined;
  /**
   * Services that webhooks of CRDs and admission name in
   * `clientConfig.service`, by `namespace/name:port`, or `namespace/name` for
   * port 443, or origins of `clientConfig.url`, such as `https://10.0.0.7:9443`: a base URL, or a handler that gets the review and returns it with
   * the response, in process and without TLS. Its second argument has the path
   * of the webhook, the time limit in milliseconds and its signal. Services that
   * are added to the object later are called as well.
   */
  readonly services?:
    | Readonly<
      Record<
        string,
        | string
        | ((
          // deno-lint-ignore no-explicit-any -- handlers declare the review they take
          review: any,
          call: {
            readonly path: string;
            readonly timeout: number;
            readonly signal: AbortSignal;
          },
        ) => unknown)
      >
    >
    | undefined;
  /**
   * Client certificate that admission webhooks are called with, as the
   * `kubeConfigFile` of an `AdmissionConfiguration` gives it to kube-apiserver. By
   * default they are called without, as conversion webhooks always are.
   */
  readonly webhookCertificate?: KeyPair | undefined;
  /** Logger for internal errors; by default nothing is logged. */
  readonly logger?: Logger | undefined;
}

const USER_RULES = { name: "name", groups: "strings?" } as const;
const TOKEN_RULES: OptionRules<
  NonNullable<ApiServerOptions["users"]>[number]
> = { ...USER_RULES, token: "name", uid: "name?" };
const ACCOUNT_RULES: OptionRules<
  NonNullable<ApiServerOptions["serviceAccounts"]>
> = {
  issuers: "strings?",
  audiences: "strings?",
  signingKey: "name?",
  keys: "strings?",
};
const HISTORY_RULES: OptionRules<HistoryLimits> = {
  changes: "size",
  bytes: "size",
};
const GATE_RULES: OptionRules<
  NonNullable<ApiServerOptions["featureGates"]>
> = { ShardedListAndWatch: "boolean?" };
const NODE_RULES: OptionRules<{ nodes?: number | undefined }> = {
  nodes: "size?",
};
const POD_RULES: OptionRules<PodHooks> = {
  run: "function?",
  logs: "function?",
  exec: "function?",
  attach: "function?",
  portForward: "function?",
};
const RULES: OptionRules<ApiServerOptions> = {
  port: "any?",
  host: "name?",
  tls: "boolean?",
  http2: "boolean?",
  token: "name?",
  users: { type: "array?", options: TOKEN_RULES },
  authorization: ["none", "rbac", undefined],
  authority: "object?",
  serving: "object?",
  clientAuthorities: "name?",
  webhookCertificate: "object?",
  serviceAccounts: { type: "object?", options: ACCOUNT_RULES },
  disabledAdmission: "strings?",
  data: "name?",
  audit: "function?",
  clock: "clock?",
  bookmarks: "boolean?",
  seed: "number?",
  history: { type: "object?", options: HISTORY_RULES },
  establishingDelay: "number?",
  controllers: "strings?",
  simulate: "any?",
  version: [...Object.keys(RELEASES) as KubernetesVersion[], undefined],
  featureGates: { type: "object?", options: GATE_RULES },
  pods: { type: "object?", options: POD_RULES },
  services: "object?",
  logger: "logger?",
};

/**
 * Validates name and groups of a user.
 *
 * @throws {TypeError} If the name or the groups are missing or have another
 * type.
 */
export function checkUser(user: object, subject: string): void {
  checkOptions(user, USER_RULES, subject);
}

/**
 * Checks the options of a server before it opens anything: their names, types
 * and ranges.
 *
 * @throws {TypeError} If an option is unknown or has another type.
 * @throws {RangeError} If a number is out of range.
 */
export function checkServerOptions(options: ApiServerOptions): void {
  const subject = "an API server";
  checkOptions(options, RULES, subject);
  const { controllers, simulate, port, establishingDelay } = options;
  for (const [name, service] of Object.entries(options.services ?? {})) {
    if (!/^(?:[^/:]+\/[^/:]+(?::\d+)?|https:\/\/[^/]+)$/.test(name)) {
      throw new TypeError(
        `Cannot start ${subject}: the name of a service must be namespace/name, namespace/name:port or the origin of a URL with https:, without a path: received ${
          JSON.stringify(name)
        }`,
      );
    }
    if (typeof service === "function" || URL.canParse(service)) continue;
    throw new TypeError(
      `Cannot start ${subject}: the service ${
        JSON.stringify(name)
      } must be a URL or a function: received ${JSON.stringify(service)}`,
    );
  }
  const tokens = new Set([options.token]);
  for (const user of options.users ?? []) {
    if (tokens.has(user.token)) {
      throw new RangeError(
        `Cannot start ${subject}: each user must have a token of its own: received that of another user for ${
          JSON.stringify(user.name)
        }`,
      );
    }
    tokens.add(user.token);
  }
  controllerSwitch(controllers ?? []);
  if (typeof simulate === "object") {
    checkOptions(simulate, NODE_RULES, `${subject}, simulate`);
  } else checkOption(simulate, "boolean?", { name: "simulate", subject });
  if (port !== false) checkOption(port, "port?", { name: "port", subject });
  if (establishingDelay !== undefined && !(establishingDelay >= 0)) {
    throw new RangeError(
      `Cannot start an API server: "establishingDelay" must be zero or more milliseconds: received ${establishingDelay}`,
    );
  }
}
