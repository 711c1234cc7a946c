import { join } from "node:path";
import { readFile } from "node:fs/promises";
import type { Clock } from "../clock.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import { FileCredentials } from "./file_credentials.ts";
import { checkCertificates } from "./pem.ts";
import type { Environment } from "./proxy.ts";
import { SecretFile } from "./secret_file.ts";

/** Where a pod finds its service account. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** What {@linkcode inClusterConfig} needs. */
export interface InClusterOptions {
  /** Says where the API server is, by `KUBERNETES_SERVICE_HOST`. */
  readonly environment: Environment;
  readonly clock: Clock;
  /**
   * The folder of the service account.
   *
   * @default {"/var/run/secrets/kubernetes.io/serviceaccount"}
   */
  readonly serviceAccount?: string | undefined;
}

/**
 * The cluster that this process runs in, by its pod's service account. Token and
 * authority are read again from time to time, since the kubelet replaces them.
 *
 * @throws {Error} If its service account is not mounted.
 */
export async function inClusterConfig(
  options: InClusterOptions,
): Promise<ClusterConfig> {
  const { clock, environment, serviceAccount = SERVICE_ACCOUNT } = options;
  const host = environment["KUBERNETES_SERVICE_HOST"] ?? "";
  const port = environment["KUBERNETES_SERVICE_PORT"] || "443";
  const origin = "the pod's service account";
  const file = (name: string) =>
    new SecretFile(join(serviceAccount, name), { origin, clock });
  const authority = file("ca.crt");
  const credentials = new FileCredentials({}, { token: file("token") });
  await credentials.current();
  checkCertificates(await authority.read(), origin);
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace: await namespaceOf(serviceAccount),
    certificateAuthority: () => authority.read(),
    credentials,
  };
}

async function namespaceOf(serviceAccount: string): Promise<string> {
  try {
    const path = join(serviceAccount, "namespace");
    return (await readFile(path, "utf8")).trim() || "default";
  } catch {
    return "default";
  }
}
