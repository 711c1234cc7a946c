/**
 * Credentials from exec plugins: their configuration, input and output, and their
 * renewal. `exec_process.ts` runs the programs.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import * as z from "zod/mini";
import { checkInput, escaped } from "../api/input.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { abortable } from "../signals.ts";
import type { Credential, CredentialSource } from "./cluster_config.ts";
import {
  fieldText,
  type FromFile,
  type KubeconfigCluster,
  type KubeconfigExec,
  type KubeconfigUser,
  pathFrom,
} from "./kubeconfig.ts";
import { fields } from "./kubeconfig_schema.ts";
import { checkPair } from "./pem.ts";
import { parseYaml } from "./yaml_text.ts";

/** Maximum time between the renewal of a credential and its expiry. */
const RENEWAL_MARGIN_MS = 60_000;
/**
 * Delay between attempts to renew a credential that is still in use: after one that
 * failed, and while the plugin issues credentials that have expired already.
 */
const RENEWAL_RETRY_MS = 5_000;

export interface ExecCredentialsDeps {
  readonly clock: Clock;
  readonly logger?: Logger | undefined;
  /** Runs the plugin and returns its standard output. */
  run(plugin: ExecPlugin): Promise<string>;
}

/**
 * Credentials from an exec plugin. As in client-go, the plugin runs for the
 * first request, shortly before a credential expires, and when the server
 * refused one, but never twice at the same time.
 */
export class ExecCredentials implements CredentialSource {
  readonly #plugin: ExecPlugin;
  readonly #deps: ExecCredentialsDeps;
  #cached: ExecCredential | undefined;
  /** Wall time from which the credential is to be renewed. */
  #staleAt = Infinity;
  #running: Promise<Credential> | undefined;
  /** Whether the last credential had expired when it was issued. */
  #isSkewed = false;

  constructor(plugin: ExecPlugin, deps: ExecCredentialsDeps) {
    this.#plugin = plugin;
    this.#deps = deps;
  }

  async current(signal?: AbortSignal): Promise<Credential> {
    const cached = this.#cached;
    const now = this.#deps.clock.wallTime();
    if (cached === undefined) return await this.#renew(signal);
    if (now < this.#staleAt) return cached.credential;
    try {
      return await this.#renew(signal);
    } catch (error) {
      // The current credential is used until it expires.
      const later = this.#deps.clock.wallTime();
      if (later >= (cached.expiresAt ?? Infinity)) throw error;
      this.#staleAt = later + RENEWAL_RETRY_MS;
      return cached.credential;
    }
  }

  async refresh(
    refused: Credential,
    signal?: AbortSignal,
  ): Promise<Credential> {
    const cached = this.#cached?.credential;
    return cached !== undefined && cached !== refused
      ? cached
      : await this.#renew(signal);
  }

  /** Waits for a run of the plugin, which serves other requests as well. */
  #renew(signal?: AbortSignal): Promise<Credential> {
    const running = this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return signal === undefined ? running : abortable(running, signal);
  }

  async #run(): Promise<Credential> {
    const { clock, run } = this.#deps;
    const output = await run(this.#plugin);
    const renewed = await readExecCredential(this.#plugin, output);
    const now = clock.wallTime();
    const { expiresAt = Infinity } = renewed;
    this.#cached = renewed;
    // At most a tenth of the lifetime, so that short-lived credentials are not
    // renewed constantly.
    this.#staleAt = expiresAt > now
      ? expiresAt - Math.min(RENEWAL_MARGIN_MS, (expiresAt - now) / 10)
      : now + RENEWAL_RETRY_MS;
    this.#noteSkew(now - expiresAt);
    return renewed.credential;
  }

  /** Warns once of credentials that had expired when they were issued. */
  #noteSkew(expiredFor: number): void {
    const isSkewed = expiredFor >= 0;
    if (isSkewed && !this.#isSkewed) {
      const seconds = Math.round(expiredFor / 1_000);
      this.#deps.logger?.warn(
        `An exec plugin issued a credential that expired ${seconds} s ago: the clock of this machine is ahead by at least as much, or the credential is old`,
        { plugin: this.#plugin.origin },
      );
    }
    this.#isSkewed = isSkewed;
  }
}

const API_GROUP = "client.authentication.k8s.io";
const API_VERSIONS = [`${API_GROUP}/v1`, `${API_GROUP}/v1beta1`];
const INTERACTIVE_MODES = ["Never", "IfAvailable", "Always"];
/** Name of the cluster extension for exec plugins. */
const EXTENSION = `${API_GROUP}/exec`;

export interface ExecPlugin {
  /** Location in the kubeconfig, for errors. */
  readonly origin: string;
  /** API version of the exchanged ExecCredential objects. */
  readonly apiVersion: string;
  /** Program: a name to find in `PATH`, or an absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  /** Additional environment variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Text for the error if the program is not installed; may be empty. */
  readonly installHint: string;
  /** Policy for the use of the terminal by the plugin. */
  readonly interactiveMode: "Never" | "IfAvailable" | "Always";
  /** Cluster information for the plugin, if it requests it. */
  readonly cluster?: Readonly<Record<string, unknown>> | undefined;
}

export interface ExecCredential {
  readonly credential: Credential;
  /** Expiry, in milliseconds since the Unix epoch; absent if it never expires. */
  readonly expiresAt?: number | undefined;
}

/**
 * Reads the `exec` field of a user.
 *
 * @param cluster The cluster, for plugins that request its information.
 * @throws {TypeError} If a required field is missing or a value is unknown.
 */
export function execPlugin(
  user: FromFile<KubeconfigUser>,
  cluster: FromFile<KubeconfigCluster> & {
    readonly authority?: string | undefined;
  },
): ExecPlugin {
  const exec: KubeconfigExec = user.value.exec ?? {};
  const origin = fieldText(user, "exec");
  const fail = (field: string, expected: string): never => {
    throw new TypeError(
      `Cannot use ${origin}: "${field}" must be ${expected}: received ${
        JSON.stringify(exec[field as keyof KubeconfigExec])
      }`,
    );
  };
  const { apiVersion = "", args = [], command = "", env = [] } = exec;
  if (command === "") fail("command", "the program to run");
  if (!API_VERSIONS.includes(apiVersion)) {
    fail("apiVersion", API_VERSIONS.join(" or "));
  }
  // Required in v1; v1beta1 has a default.
  const mode = exec.interactiveMode ??
    (apiVersion === `${API_GROUP}/v1` ? "" : "IfAvailable");
  if (!INTERACTIVE_MODES.includes(mode)) {
    fail("interactiveMode", INTERACTIVE_MODES.join(", "));
  }
  return {
    origin,
    apiVersion,
    command: /[\\/]/.test(command) ? pathFrom(user, command) : command,
    args,
    // A variable without a value is empty, as in Go.
    env: Object.fromEntries(env.map(({ name, value = "" }) => [name, value])),
    installHint: exec.installHint?.trim() ?? "",
    interactiveMode: mode as ExecPlugin["interactiveMode"],
    cluster: exec.provideClusterInfo
      ? clusterInfo(cluster.value, cluster.authority)
      : undefined,
  };
}

function clusterInfo(
  cluster: KubeconfigCluster,
  authority: string | undefined,
): Record<string, unknown> {
  return {
    server: cluster.server,
    "tls-server-name": cluster["tls-server-name"],
    "insecure-skip-tls-verify": cluster["insecure-skip-tls-verify"],
    "certificate-authority-data": authority === undefined
      ? undefined
      : Buffer.from(authority).toString("base64"),
    "proxy-url": cluster["proxy-url"],
    config: cluster.extensions?.find(({ name }) => name === EXTENSION)
      ?.extension,
  };
}

/** Encodes the variable `KUBERNETES_EXEC_INFO` for a plugin. */
export function execInfo(plugin: ExecPlugin, interactive: boolean): string {
  return JSON.stringify({
    kind: "ExecCredential",
    apiVersion: plugin.apiVersion,
    spec: { cluster: plugin.cluster, interactive },
  });
}

/** Point in time, in the form of RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Schema of a text that is absent if it is empty, as in Go. */
const TEXT = z.optional(
  z.pipe(z.string(), z.transform((text) => text || undefined)),
);

const STATUS = fields({
  token: TEXT,
  clientCertificateData: TEXT,
  clientKeyData: TEXT,
  expirationTimestamp: z.optional(
    z.string().check(
      z.refine(
        (text) =>
          text === "" || (TIME.test(text) && !Number.isNaN(Date.parse(text))),
        "must be a time, such as 2026-01-31T12:00:00Z",
      ),
    ),
  ),
});

/**
 * Reads the output of a plugin, in YAML or JSON.
 *
 * @throws {TypeError} If it is no credential; the error does not quote it.
 */
async function readExecCredential(
  plugin: ExecPlugin,
  output: string,
): Promise<ExecCredential> {
  const fail = (expected: string) =>
    new TypeError(
      `Cannot use ${plugin.origin}: "${
        escaped(plugin.command)
      }" must print ${expected}`,
    );
  const what = "an ExecCredential as JSON or YAML";
  const document = await parseYaml(output, {
    subject: `the output of ${plugin.origin}`,
    refuse: ({ code, at }) => fail(`${what}: received ${code}${at}`),
  });
  const schema = fields({
    kind: z.literal("ExecCredential"),
    apiVersion: z.literal(plugin.apiVersion),
    status: STATUS,
  });
  const { status } = checkInput(document, schema, {
    refuse: (fault) => fail(`${what}: ${fault}`),
  });
  const { token, expirationTimestamp } = status;
  const { clientCertificateData: certificate, clientKeyData: key } = status;
  if ((certificate === undefined) !== (key === undefined)) {
    throw fail("certificate and key, or neither: received one of them");
  }
  if (token === undefined && certificate === undefined) {
    throw fail("a token or a certificate: received neither");
  }
  const place = (field: string) => `${plugin.origin}: status.${field}`;
  checkPair({ certificate, key }, {
    certificate: place("clientCertificateData"),
    key: place("clientKeyData"),
    missing: { certificate: "clientCertificateData", key: "clientKeyData" },
  });
  const expiresAt = expirationTimestamp
    ? Date.parse(expirationTimestamp)
    : undefined;
  return { credential: { token, certificate, key }, expiresAt };
}
