import {
  createAuthority,
  issueCertificate,
  type KeyPair,
} from "../../apiserver/certificates.ts";
import {
  type ClusterConfig,
  type Credential,
  credentialSource,
} from "../../core/config/cluster_config.ts";

/** The authority of the clusters that the kubeconfigs name. */
export const AUTHORITY: KeyPair = createAuthority({
  commonName: "test-authority",
});
/** What a user proves itself with. */
export const JANE: KeyPair = issueCertificate(AUTHORITY, {
  commonName: "jane",
  usage: "client",
});

/** A text as the `-data` fields of a kubeconfig hold it. */
export const base64 = (text: string): string => btoa(text);

/** A kubeconfig with one context, `dev`. */
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

/** What a configuration gives at present, as plain data. */
export async function credential(config: ClusterConfig): Promise<Credential> {
  const current = await credentialSource(config.credentials).current();
  return JSON.parse(JSON.stringify(current));
}

/** The authority that a configuration trusts at present, in PEM. */
export async function authority(
  config: ClusterConfig,
): Promise<string | undefined> {
  const { certificateAuthority } = config;
  return typeof certificateAuthority === "function"
    ? await certificateAuthority()
    : certificateAuthority;
}
