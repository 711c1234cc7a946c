import type { KeyPair } from "@coracle/dev/apiserver";
import type { ClusterConfig, Credential } from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";
import { credentialSource } from "../../core/config/cluster_config.ts";

/** Certificate authority of the clusters. */
export const AUTHORITY: KeyPair = createAuthority({
  commonName: "test-authority",
});
/** Client certificate of the user `jane`. */
export const JANE: KeyPair = issueCertificate(AUTHORITY, {
  commonName: "jane",
  usage: "client",
});

/** Encodes a text for a `-data` field of a kubeconfig. */
export const base64 = (text: string): string => btoa(text);

/** Creates a kubeconfig with one context, `dev`. */
export function kubeconfig(
  cluster: Record<string, unknown> = {},
  user: Record<string, unknown> = {},
): string {
  return JSON.stringify({
    "current-context": "dev",
    contexts: [{
      name: "dev",
      context: { cluster: "here", user: "jane", namespace: "web" },
    }],
    clusters: [{
      name: "here",
      cluster: { server: "https://10.0.0.1:6443", ...cluster },
    }],
    users: [{ name: "jane", user }],
  });
}

/** Reads the current credential of a configuration. */
export async function credential(config: ClusterConfig): Promise<Credential> {
  const current = await credentialSource(config.credentials).current();
  return JSON.parse(JSON.stringify(current));
}

/** Reads the current certificate authority of a configuration, in PEM. */
export async function authority(
  config: ClusterConfig,
): Promise<string | undefined> {
  const { certificateAuthority } = config;
  return typeof certificateAuthority === "function"
    ? await certificateAuthority()
    : certificateAuthority;
}
