/**
 * What an exec plug-in is told and what its answer means, without running one.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Credential } from "./cluster_config.ts";
import type {
  FromFile,
  KubeconfigCluster,
  KubeconfigExec,
  KubeconfigUser,
} from "./kubeconfig.ts";
import { checkCertificates, checkKey } from "./pem.ts";

const API_GROUP = "client.authentication.k8s.io";
const API_VERSIONS = [`${API_GROUP}/v1`, `${API_GROUP}/v1beta1`];
const INTERACTIVE_MODES = ["Never", "IfAvailable", "Always"];
/** The extension of a cluster that is meant for plug-ins. */
const EXTENSION = `${API_GROUP}/exec`;

/** How to get a credential from a program. */
export interface ExecPlugin {
  /** Names the place in the kubeconfig, for errors. */
  readonly origin: string;
  readonly apiVersion: string;
  /** A name to look for on the path, or an absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What to tell a person who does not have the program; empty if nothing. */
  readonly installHint: string;
  readonly interactiveMode: "Never" | "IfAvailable" | "Always";
  /** The cluster as the plug-in is told of it, if it wants to be. */
  readonly cluster?: Readonly<Record<string, unknown>> | undefined;
}

/** A credential and when it ends. */
export interface ExecCredential {
  readonly credential: Credential;
  /** In milliseconds since the Unix epoch; absent if it does not end. */
  readonly expiresAt?: number | undefined;
}

/**
 * Reads the `exec` part of a user.
 *
 * @param user The user that has it.
 * @param cluster The cluster, in case the plug-in wants to know it.
 * @throws {TypeError} If a field is missing or not one that is known.
 */
export function execPlugin(
  user: FromFile<KubeconfigUser>,
  cluster: FromFile<KubeconfigCluster> & {
    readonly authority?: string | undefined;
  },
): ExecPlugin {
  const exec: KubeconfigExec = user.value.exec ?? {};
  const origin = `${user.file}: "${user.path}.exec"`;
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
  // Older plug-ins do not say whether they talk to a person; v1 must.
  const mode = exec.interactiveMode ??
    (apiVersion === `${API_GROUP}/v1` ? "" : "IfAvailable");
  if (!INTERACTIVE_MODES.includes(mode)) {
    fail("interactiveMode", INTERACTIVE_MODES.join(", "));
  }
  return {
    origin,
    apiVersion,
    command,
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

/** What a plug-in finds in the variable `KUBERNETES_EXEC_INFO`. */
export function execInfo(plugin: ExecPlugin, interactive: boolean): string {
  return JSON.stringify({
    kind: "ExecCredential",
    apiVersion: plugin.apiVersion,
    spec: { cluster: plugin.cluster, interactive },
  });
}

/**
 * Reads what a plug-in printed.
 *
 * @throws {TypeError} If it is no credential; the error quotes nothing of it.
 */
export function readExecCredential(
  plugin: ExecPlugin,
  output: string,
): ExecCredential {
  const fail = (expected: string, received: string): never => {
    throw new TypeError(
      `Cannot use ${plugin.origin}: "${plugin.command}" must print ${expected}: received ${received}`,
    );
  };
  const answer = parseObject(output) ??
    fail("an ExecCredential as JSON", `${output.length} characters`);
  if (answer["kind"] !== "ExecCredential") {
    fail('the kind "ExecCredential"', typeof answer["kind"]);
  }
  if (answer["apiVersion"] !== plugin.apiVersion) {
    fail(`the apiVersion ${plugin.apiVersion}`, "another one");
  }
  const status = asObject(answer["status"]) ?? fail("a status", "none");
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
