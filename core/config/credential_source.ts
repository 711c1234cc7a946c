import type { Credential, CredentialSource } from "./cluster_config.ts";

/** Takes a credential that never changes for a source of credentials. */
export function credentialSource(
  credentials: Credential | CredentialSource | undefined,
): CredentialSource {
  if (credentials !== undefined && "current" in credentials) return credentials;
  const fixed = Promise.resolve(credentials ?? {});
  return { current: () => fixed, refresh: () => fixed };
}
