import type { Clock } from "../clock.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import type {
  FromFile,
  Kubeconfig,
  KubeconfigCluster,
  KubeconfigContext,
} from "./kubeconfig.ts";
import { checkCertificates, decodeBase64 } from "./pem.ts";
import { type Environment, proxyFromEnvironment } from "./proxy.ts";
import { SecretFile } from "./secret_file.ts";
import {
  fieldText,
  pathFrom,
  userCredentials,
  userImpersonation,
} from "./user_credentials.ts";

/** What {@linkcode clusterConfig} needs. */
export interface ClusterConfigOptions {
  /** The context to use; the current one when absent. */
  readonly context?: string | undefined;
  readonly environment: Environment;
  readonly clock: Clock;
  /** The file or files, as a person named them. */
  readonly source: string;
}

const PROXY_PROTOCOLS = ["http:", "https:", "socks5:"];

/**
 * What one context of a kubeconfig comes down to.
 *
 * @throws {Error} If something that it names is not there or cannot be used.
 */
export async function clusterConfig(
  kubeconfig: Kubeconfig,
  options: ClusterConfigOptions,
): Promise<ClusterConfig> {
  const { clock, environment } = options;
  const context = chosenContext(kubeconfig, options);
  const cluster = named(kubeconfig.clusters, context, "cluster");
  const user = context.value.user
    ? named(kubeconfig.users, context, "user")
    : undefined;
  const server = checkedServer(cluster);
  const authority = await clusterAuthority(cluster, clock);
  return {
    server,
    namespace: context.value.namespace || "default",
    certificateAuthority: authority.current,
    serverName: cluster.value["tls-server-name"] || undefined,
    insecureSkipTlsVerify: cluster.value["insecure-skip-tls-verify"],
    proxyUrl: checkedProxy(cluster) ??
      proxyFromEnvironment(server, environment),
    credentials: user === undefined ? undefined : await userCredentials(
      user,
      { ...cluster, authority: authority.present },
      { clock },
    ),
    impersonate: user === undefined ? undefined : userImpersonation(user),
  };
}

function chosenContext(
  kubeconfig: Kubeconfig,
  { context, source }: ClusterConfigOptions,
): FromFile<KubeconfigContext> {
  const name = context ?? kubeconfig["current-context"];
  const found = name === undefined ? undefined : kubeconfig.contexts.get(name);
  if (found === undefined) {
    throw new TypeError(
      `Cannot use ${source}: ${
        context === undefined ? '"current-context"' : "the context"
      } must be one of ${listOf(kubeconfig.contexts)}: received ${
        name === undefined ? "nothing" : `"${name}"`
      }`,
    );
  }
  return found;
}

/** The entry that a context names. */
function named<T>(
  entries: ReadonlyMap<string, FromFile<T>>,
  context: FromFile<KubeconfigContext>,
  part: "cluster" | "user",
): FromFile<T> {
  const name = context.value[part];
  const found = name === undefined ? undefined : entries.get(name);
  if (found !== undefined) return found;
  throw new TypeError(
    `Cannot use ${fieldText(context, part)}: it must be one of ${
      listOf(entries)
    }: received ${name === undefined ? "nothing" : `"${name}"`}`,
  );
}

function listOf(entries: ReadonlyMap<string, unknown>): string {
  const names = [...entries.keys()].map((name) => `"${name}"`).join(", ");
  return names === "" ? "the names there, of which there are none" : names;
}

function checkedServer(cluster: FromFile<KubeconfigCluster>): string {
  const { server = "" } = cluster.value;
  // kubectl takes a host alone too, and tells by the rest whether to use TLS.
  const secure = cluster.value["certificate-authority"] ||
    cluster.value["certificate-authority-data"] ||
    cluster.value["insecure-skip-tls-verify"];
  const text = server.includes("://") || server === ""
    ? server
    : `${secure ? "https" : "http"}://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "https:" || url?.protocol === "http:") return text;
  throw new TypeError(
    `Cannot use ${
      fieldText(cluster, "server")
    }: it must be a URL with http: or https:: received ${
      server === "" ? "nothing" : url?.protocol ?? "no URL"
    }`,
  );
}

function checkedProxy(
  cluster: FromFile<KubeconfigCluster>,
): string | undefined {
  const proxy = cluster.value["proxy-url"];
  if (!proxy) return undefined;
  const protocol = URL.canParse(proxy) ? new URL(proxy).protocol : "no URL";
  if (PROXY_PROTOCOLS.includes(protocol)) return proxy;
  throw new TypeError(
    `Cannot use ${fieldText(cluster, "proxy-url")}: it must be a URL with ${
      PROXY_PROTOCOLS.join(", ")
    }: received ${protocol}`,
  );
}

interface Authority {
  /** The authorities as they are now. */
  readonly present: string | undefined;
  /** How to get them later. */
  readonly current: ClusterConfig["certificateAuthority"];
}

async function clusterAuthority(
  cluster: FromFile<KubeconfigCluster>,
  clock: Clock,
): Promise<Authority> {
  const {
    "certificate-authority": path,
    "certificate-authority-data": data,
    "insecure-skip-tls-verify": insecure,
  } = cluster.value;
  const origin = (field: string) => fieldText(cluster, field);
  if (path && data) {
    throw new TypeError(
      `Cannot use ${
        origin("certificate-authority")
      }: it must not stand beside "certificate-authority-data": received both`,
    );
  }
  if ((path || data) && insecure) {
    throw new TypeError(
      `Cannot use ${
        origin("insecure-skip-tls-verify")
      }: it must not stand beside a certificate authority: received both`,
    );
  }
  if (data) {
    const field = origin("certificate-authority-data");
    const present = decodeBase64(data, field);
    checkCertificates(present, field);
    return { present, current: present };
  }
  if (!path) return { present: undefined, current: undefined };
  const field = origin("certificate-authority");
  const file = new SecretFile(pathFrom(cluster, path), {
    origin: field,
    clock,
  });
  const present = await file.read();
  checkCertificates(present, field);
  return { present, current: () => file.read() };
}
