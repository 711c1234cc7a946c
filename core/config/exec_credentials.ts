/**
 * Credentials from exec plugins: their configuration, input and output, and their
 * renewal. `exec_process.ts` runs the programs.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Clock } from "../clock.ts";
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
import { checkCertificates, checkKey } from "./pem.ts";

/** Maximum time between the renewal of a credential and its expiry. */
const RENEWAL_MARGIN_MS = 60_000;
/** Delay between failed attempts to renew a credential that is still valid. */
const RENEWAL_RETRY_MS = 5_000;

export interface ExecCredentialsDeps {
  readonly clock: Clock;
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
    const renewed = readExecCredential(this.#plugin, await run(this.#plugin));
    const now = clock.wallTime();
    const { expiresAt = Infinity } = renewed;
    this.#cached = renewed;
    // At most a tenth of the lifetime, so that short-lived credentials are not
    // renewed constantly.
    this.#staleAt = expiresAt -
      Math.min(RENEWAL_MARGIN_MS, (expiresAt - now) / 10);
    return renewed.credential;
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
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
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

/**
 * Reads the output of a plugin.
 *
 * @throws {TypeError} If it is no credential; the error does not quote it.
 */
function readExecCredential(
  plugin: ExecPlugin,
  output: string,
): ExecCredential {
  const fail = (expected: string, received: string): never => {
    throw new TypeError(
      `Cannot use ${plugin.origin}: "${plugin.command}" must print ${expected}: received ${received}`,
    );
  };
  const document = parseObject(output) ??
    fail("an ExecCredential as JSON", `${output.length} characters`);
  if (document["kind"] !== "ExecCredential") {
    fail('the kind "ExecCredential"', typeof document["kind"]);
  }
  if (document["apiVersion"] !== plugin.apiVersion) {
    fail(`the apiVersion ${plugin.apiVersion}`, "another one");
  }
  const status = asObject(document["status"]) ?? fail("a status", "nothing");
  const field = (name: string): string | undefined => {
    const value = status[name] ?? undefined;
    return value === undefined || typeof value === "string"
      ? value || undefined
      : fail(`a string as status.${name}`, typeof value);
  };
  const token = field("token");
  const certificate = field("clientCertificateData");
  const key = field("clientKeyData");
  if ((certificate === undefined) !== (key === undefined)) {
    fail("certificate and key, or neither", "one of them");
  }
  if (token === undefined && certificate === undefined) {
    fail("a token or a certificate", "neither");
  }
  if (certificate !== undefined && key !== undefined) {
    const { origin } = plugin;
    checkCertificates(certificate, `${origin}: status.clientCertificateData`);
    checkKey(key, `${origin}: status.clientKeyData`, { certificate });
  }
  const expiry = field("expirationTimestamp");
  const expiresAt = expiry === undefined ? undefined : Date.parse(expiry);
  if (Number.isNaN(expiresAt)) {
    fail("a time as status.expirationTimestamp", "something else");
  }
  return { credential: { token, certificate, key }, expiresAt };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? value as Record<string, unknown>
    : undefined;
}
