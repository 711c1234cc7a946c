import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ApiServer, type AuditEvent } from "@coracle/dev/apiserver";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";

/** Cluster of a scenario, for clients in other processes. */
export interface ScenarioCluster {
  /** Path of a kubeconfig with all rights. */
  readonly kubeconfig: string;
  /**
   * Path of the authority of the certificate with which the API server calls
   * admission webhooks, as the user `kube-apiserver`; undefined if it has none.
   */
  readonly callers: string | undefined;
  /** Stops only what was started for it. */
  stop(): Promise<void>;
}

/** Options of {@linkcode startScenarioCluster}. */
export interface ScenarioClusterOptions {
  /** Whether Deployments must be seen to become ready. */
  readonly simulate?: boolean | undefined;
  /** Called for every request that the embedded server answers. */
  readonly audit?: ((event: AuditEvent) => void) | undefined;
}

/** Whether scenarios run against a real cluster. */
export const ON_REAL_CLUSTER: boolean =
  process.env["CORACLE_TEST_CLUSTER"] === "kubeconfig";

/**
 * The real cluster of the run, or an embedded API server of its own.
 *
 * @returns Undefined where the real one cannot do what is asked.
 */
export async function startScenarioCluster(
  options: ScenarioClusterOptions = {},
): Promise<ScenarioCluster | undefined> {
  const { simulate = false, audit } = options;
  if (ON_REAL_CLUSTER) {
    const kubeconfig = process.env["KUBECONFIG"] ?? "";
    const callers = process.env["CORACLE_TEST_CALLERS"] || undefined;
    const stop = () => Promise.resolve();
    return simulate ? undefined : { kubeconfig, callers, stop };
  }
  const folder = await mkdtemp(join(tmpdir(), "coracle-scenario-"));
  const kubeconfig = join(folder, "kubeconfig");
  const callers = join(folder, "callers.crt");
  const authority = createAuthority({ commonName: "callers" });
  const server = await ApiServer.start({
    simulate,
    audit,
    webhookCertificate: issueCertificate(authority, {
      commonName: "kube-apiserver",
      usage: "client",
    }),
  });
  await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
  await writeFile(callers, authority.certificate);
  return {
    kubeconfig,
    callers,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
