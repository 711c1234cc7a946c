import { escaped } from "../api/input.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type {
  ClusterConfig,
  Credential,
  CredentialSource,
  Impersonation,
} from "./cluster_config.ts";
import {
  fieldText,
  type FromFile,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  type KubeconfigUser,
  pathFrom,
} from "./kubeconfig.ts";
import { checkCertificates, checkPair, decodeBase64 } from "./pem.ts";
import { type Environment, proxyFromEnvironment } from "./proxy.ts";
import { FileCredentials, SecretFile } from "./file_credentials.ts";
import { checkToken } from "./token.ts";
import { ExecCredentials, execPlugin } from "./exec_credentials.ts";

export interface ClusterConfigDeps {
  /** Name of the context; the current context if absent. */
  readonly context?: string | undefined;
  /** Environment variables, for the proxy. */
  readonly environment: Environment;
  readonly clock: Clock;
  readonly logger?: Logger | undefined;
  /** Paths of the files as the user gave them, for errors. */
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
  const { environment } = deps;
  const context = chosenContext(kubeconfig, deps);
  const cluster = named(kubeconfig.clusters, context, "cluster");
  const user = context.value.user
    ? named(kubeconfig.users, context, "user")
    : undefined;
  const server = checkedServer(cluster);
  const authority = await clusterAuthority(cluster, deps);
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
      deps,
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
        name === undefined ? "nothing" : `"${escaped(name)}"`
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
    }: received ${name === undefined ? "nothing" : `"${escaped(name)}"`}`,
  );
}

function listOf(entries: ReadonlyMap<string, unknown>): string {
  const names = [...entries.keys()].map((name) => `"${escaped(name)}"`).join(
    ", ",
  );
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
  /** Value of `certificateAuthority` in the cluster configuration. */
  readonly current: ClusterConfig["certificateAuthority"];
}

async function clusterAuthority(
  cluster: FromFile<KubeconfigCluster>,
  { clock, logger }: Pick<ClusterConfigDeps, "clock" | "logger">,
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
    logger,
    check: (pem) => checkCertificates(pem, field),
  });
  return { present: await file.read(), current: () => file.read() };
}

/**
 * Creates the credentials of a user of a kubeconfig.
 *
 * @param cluster The cluster and its authority, for exec plugins.
 * @throws {TypeError} If fields are invalid or exclude each other.
 * @throws {Error} If a file cannot be read.
 */
async function userCredentials(
  user: FromFile<KubeconfigUser>,
  cluster: FromFile<KubeconfigCluster> & {
    readonly authority?: string | undefined;
  },
  { clock, logger }: Pick<ClusterConfigDeps, "clock" | "logger">,
): Promise<Credential | CredentialSource> {
  checkMethods(user);
  const { value } = user;
  if (value.exec !== undefined) {
    // Loaded lazily: most configurations have no exec plugin.
    const { runExecPlugin } = await import("./exec_process.ts");
    return new ExecCredentials(execPlugin(user, cluster), {
      clock,
      logger,
      run: (plugin) => runExecPlugin(plugin, clock),
    });
  }
  if (value.token) checkToken(value.token, fieldText(user, "token"));
  const file = (
    field: keyof KubeconfigUser,
    check?: (content: string, field: string) => void,
  ) => {
    const path = value[field];
    if (typeof path !== "string" || path === "") return undefined;
    const origin = fieldText(user, field);
    return new SecretFile(pathFrom(user, path), {
      ...{ origin, clock, logger },
      check: (content) => check?.(content, origin),
    });
  };
  const data = (field: keyof KubeconfigUser) => {
    const text = value[field];
    return typeof text === "string" && text !== ""
      ? decodeBase64(text, fieldText(user, field))
      : undefined;
  };
  const credentials = new FileCredentials({
    token: value.token,
    username: value.username,
    password: value.password,
    certificate: data("client-certificate-data"),
    key: data("client-key-data"),
  }, {
    token: file("tokenFile", checkToken),
    certificate: file("client-certificate"),
    key: file("client-key"),
  }, {
    logger,
    check: (credential) => {
      const place = (field: "client-certificate" | "client-key") =>
        fieldText(user, value[`${field}-data`] ? `${field}-data` : field);
      checkPair(credential, {
        certificate: place("client-certificate"),
        key: place("client-key"),
        missing: {
          certificate: '"client-certificate" or "client-certificate-data"',
          key: '"client-key" or "client-key-data"',
        },
      });
    },
  });
  await credentials.current();
  return credentials;
}

/** Rejects credentials that exclude each other, and removed auth providers. */
function checkMethods(user: FromFile<KubeconfigUser>): void {
  const { value } = user;
  const provider = value["auth-provider"];
  if (provider !== undefined) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "auth-provider")
      }: Kubernetes has removed auth providers; use an "exec" plugin: received "${
        escaped(provider.name ?? "")
      }"`,
    );
  }
  const basic = Boolean(value.username || value.password);
  const methods = [
    ...(value.token || value.tokenFile ? ["token"] : []),
    ...(basic ? ["username"] : []),
    ...(value.exec ? ["exec"] : []),
  ];
  if (methods.length > 1) {
    throw new TypeError(
      `Cannot use ${user.file}: "${user.path}" must have only one authentication method: received ${
        methods.join(" and ")
      }`,
    );
  }
  for (const part of ["client-certificate", "client-key"] as const) {
    if (value[part] && value[`${part}-data`]) {
      throw new TypeError(
        `Cannot use ${
          fieldText(user, part)
        }: it must not be combined with "${part}-data"`,
      );
    }
  }
}

/**
 * Reads the impersonation of a user of a kubeconfig.
 *
 * @throws {TypeError} If there are groups, a UID or extra attributes but no user.
 */
function userImpersonation(
  user: FromFile<KubeconfigUser>,
): Impersonation | undefined {
  const { as, "as-groups": groups, "as-uid": uid, "as-user-extra": extra } =
    user.value;
  if (as) return { user: as, uid, groups, extra };
  if (uid || groups?.length || extra !== undefined) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "as")
      }: it is required with "as-uid", "as-groups" or "as-user-extra"`,
    );
  }
  return undefined;
}
