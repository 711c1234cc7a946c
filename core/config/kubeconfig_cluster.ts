import type { Clock } from "../clock.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import {
  fieldText,
  type FromFile,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  pathFrom,
} from "./kubeconfig.ts";
import { checkCertificates, decodeBase64 } from "./pem.ts";
import { type Environment, proxyFromEnvironment } from "./proxy.ts";
import { SecretFile } from "./file_credentials.ts";
import { userCredentials, userImpersonation } from "./user_credentials.ts";

export interface ClusterConfigDeps {
  /** Name of the context; the current context if absent. */
  readonly context?: string | undefined;
  /** Environment variables, for the proxy. */
  readonly environment: Environment;
  readonly clock: Clock;
  /** Path of the file or files as the user gave it, for errors. */
  readonly source: string;
}

const PROXY_PROTOCOLS = ["http:", "https:", "socks5:"];

/**
 * Creates the configuration of the cluster of a context.
 *
 * @throws {Error} If the context, cluster or user does not exist or is invalid.
 */
export async function clusterConfig(
  kubeconfig: Kubeconfig,
  deps: ClusterConfigDeps,
): Promise<ClusterConfig> {
  const { clock, environment } = deps;
  const context = chosenContext(kubeconfig, deps);
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
  { context, source }: ClusterConfigDeps,
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

/** Finds the cluster or user of a context. */
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
  return names === "" ? "the names in the file, which has none" : names;
}

function checkedServer(cluster: FromFile<KubeconfigCluster>): string {
  const { server = "" } = cluster.value;
  // kubectl accepts a host alone, and uses TLS if the cluster has TLS options.
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
  /** Current certificate authorities, in PEM. */
  readonly present: string | undefined;
  /** Value of the field in the configuration. */
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
      }: it must not be combined with "certificate-authority-data"`,
    );
  }
  if ((path || data) && insecure) {
    throw new TypeError(
      `Cannot use ${
        origin("insecure-skip-tls-verify")
      }: it must not be combined with a certificate authority`,
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
