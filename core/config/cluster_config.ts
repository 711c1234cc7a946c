import type { OptionRules } from "../api/options.ts";

/** What proves to a cluster who asks. All parts are optional. */
export interface Credential {
  /** A bearer token. */
  readonly token?: string | undefined;
  /** A user name for basic authentication. */
  readonly username?: string | undefined;
  /** The password of `username`. */
  readonly password?: string | undefined;
  /** A client certificate, with its chain, in PEM. */
  readonly certificate?: string | undefined;
  /** The private key of `certificate`, in PEM. */
  readonly key?: string | undefined;
}

/** Credentials that change while the process lives. */
export interface CredentialSource {
  /** The credential to use now; cheap when nothing changed. */
  current(): Promise<Credential>;
  /**
   * Called when the server refused a credential; gives a newer one, or the same
   * when there is none.
   */
  refresh(refused: Credential): Promise<Credential>;
}

/** On whose behalf requests are made. */
export interface Impersonation {
  /** The user's name. */
  readonly user: string;
  /** The user's unique id. */
  readonly uid?: string | undefined;
  /** The user's groups. */
  readonly groups?: readonly string[] | undefined;
  /** Further facts about the user. */
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * How to reach a cluster: what a kubeconfig context or a pod's service account
 * comes down to. Write one by hand where neither fits.
 */
export interface ClusterConfig {
  /** The URL of the API server; it may have a path. */
  readonly server: string;
  /**
   * The namespace that a person works in; calls of a client never use it by
   * themselves.
   *
   * @default {"default"}
   */
  readonly namespace?: string | undefined;
  /**
   * The certificate authorities that the server's certificate may come from, in
   * PEM, or a function that gives the present ones.
   *
   * @default {the runtime's own}
   */
  readonly certificateAuthority?: string | (() => Promise<string>) | undefined;
  /**
   * The name that the server's certificate must have.
   *
   * @default {the host of `server`}
   */
  readonly serverName?: string | undefined;
  /**
   * Whether to accept any server certificate. Whoever sits between can then
   * read and change everything.
   *
   * @default {false}
   */
  readonly insecureSkipTlsVerify?: boolean | undefined;
  /**
   * The proxy to go through, such as `http://proxy:3128`.
   *
   * @default {none}
   */
  readonly proxyUrl?: string | undefined;
  /**
   * Who asks.
   *
   * @default {nobody: the request is anonymous}
   */
  readonly credentials?: Credential | CredentialSource | undefined;
  /**
   * On whose behalf.
   *
   * @default {their own}
   */
  readonly impersonate?: Impersonation | undefined;
}

/** What the parts of a configuration must be. */
export const CLUSTER_RULES: OptionRules<ClusterConfig> = {
  server: "string",
  namespace: "string?",
  certificateAuthority: "any?",
  serverName: "string?",
  insecureSkipTlsVerify: "boolean?",
  proxyUrl: "string?",
  credentials: "object?",
  impersonate: "object?",
};

/** Takes a credential that never changes for a source of credentials. */
export function credentialSource(
  credentials: Credential | CredentialSource | undefined,
): CredentialSource {
  if (credentials !== undefined && "current" in credentials) return credentials;
  const fixed = Promise.resolve(credentials ?? {});
  return { current: () => fixed, refresh: () => fixed };
}
