import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import type { Logger } from "../logger.ts";
import { FileCredentials, SecretFile } from "./file_credentials.ts";
import { readLimited } from "./limited_file.ts";
import { checkCertificates } from "./pem.ts";
import type { Environment } from "./proxy.ts";
import { checkToken } from "./token.ts";

/** Folder of the service account in a pod. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Maximum size of the file with the namespace, in bytes. */
const MAX_NAMESPACE_BYTES = 1024;

export interface InClusterDeps {
  /** Environment variables, with `KUBERNETES_SERVICE_HOST` and `_PORT`. */
  readonly environment: Environment;
  readonly clock: Clock;
  readonly logger?: Logger | undefined;
  /**
   * Folder of the service account.
   *
   * @default {"/var/run/secrets/kubernetes.io/serviceaccount"}
   */
  readonly serviceAccount?: string | undefined;
}

/**
 * Creates the configuration of the cluster that this process runs in, from the
 * service account of its pod. The token and the certificate authority are read
 * again from time to time, because the kubelet replaces them.
 *
 * @throws {Error} If the service account is not mounted.
 */
export async function inClusterConfig(
  deps: InClusterDeps,
): Promise<ClusterConfig> {
  const { clock, environment, logger } = deps;
  const { serviceAccount = SERVICE_ACCOUNT } = deps;
  const host = environment["KUBERNETES_SERVICE_HOST"] ?? "";
  const port = environment["KUBERNETES_SERVICE_PORT"] || "443";
  const origin = "the pod's service account";
  const file = (name: string, check: (content: string) => void) =>
    new SecretFile(join(serviceAccount, name), {
      ...{ origin, clock, logger, check },
    });
  const authority = file("ca.crt", (pem) => checkCertificates(pem, origin));
  const token = file("token", (text) => checkToken(text, origin));
  const credentials = new FileCredentials({}, { token }, { logger });
  await credentials.current();
  await authority.read();
  const namespace = await readLimited(
    join(serviceAccount, "namespace"),
    MAX_NAMESPACE_BYTES,
  ).catch(() => undefined);
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace: namespace?.trim() || "default",
    certificateAuthority: () => authority.read(),
    credentials,
  };
}
