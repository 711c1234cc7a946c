import { credentialSource } from "../../core/config/cluster_config.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import type { Target } from "./http_client.ts";

/** The cluster of the kubeconfig, whose administrator has a token. */
export async function realTarget(): Promise<Target> {
  const config = await loadConfig();
  const { server: url, certificateAuthority, credentials } = config;
  const { token } = await credentialSource(credentials).current();
  if (token === undefined) {
    throw new TypeError(
      "Cannot replay: the kubeconfig must have a token: received none",
    );
  }
  return {
    url,
    token,
    authority: typeof certificateAuthority === "function"
      ? await certificateAuthority()
      : certificateAuthority,
    insecure: config.insecureSkipTlsVerify,
  };
}
