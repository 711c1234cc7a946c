import type { OptionRules } from "../api/options.ts";
import { checkPair } from "./pem.ts";

/** Credential of a user or service account; all fields are optional. */
export interface Credential {
  /** Bearer token. */
  readonly token?: string | undefined;
  /** User name for basic authentication. */
  readonly username?: string | undefined;
  /** Password of `username`. */
  readonly password?: string | undefined;
  /** Client certificate with its chain, in PEM. */
  readonly certificate?: string | undefined;
  /** Private key of `certificate`, in PEM. */
  readonly key?: string | undefined;
}

/** Source of credentials that change while the process runs. */
export interface CredentialSource {
  /** Returns the current credential; called for every request, with its signal. */
  current(signal?: AbortSignal): Promise<Credential>;
  /**
   * Renews a credential that the server refused with 401; returns the same
   * credential if there is no newer one.
   */
  refresh(refused: Credential, signal?: AbortSignal): Promise<Credential>;
}

/** User to impersonate in requests. */
export interface Impersonation {
  /** Name of the user. */
  readonly user: string;
  /** Unique ID of the user. */
  readonly uid?: string | undefined;
  /** Groups of the user. */
  readonly groups?: readonly string[] | undefined;
  /** Additional attributes of the user. */
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * Configuration of a cluster: address, certificates and credentials.
 * {@linkcode loadConfig} creates one from a kubeconfig or from the service account
 * of the pod; it can be written by hand as well.
 */
export interface ClusterConfig {
  /** URL of the API server; it may have a path. */
  readonly server: string;
  /**
   * Namespace for `client.namespace`. Requests do not use it by default.
   *
   * @default {"default"}
   */
  readonly namespace?: string | undefined;
  /**
   * Certificate authorities for the server's certificate, in PEM, or a function
   * that returns the current ones. Defaults to those of the runtime.
   */
  readonly certificateAuthority?: string | (() => Promise<string>) | undefined;
  /**
   * Name that the server's certificate must have. Defaults to the host of
   * `server`.
   */
  readonly serverName?: string | undefined;
  /**
   * Whether to accept any server certificate. Insecure: the connection can be
   * intercepted and modified.
   *
   * @default {false}
   */
  readonly insecureSkipTlsVerify?: boolean | undefined;
  /**
   * URL of a proxy, such as `http://proxy:3128`. Connections are direct by
   * default.
   */
  readonly proxyUrl?: string | undefined;
  /**
   * Credentials of the client. Requests are anonymous by default.
   */
  readonly credentials?: Credential | CredentialSource | undefined;
  /**
   * User to impersonate, if any.
   */
  readonly impersonate?: Impersonation | undefined;
}

const CREDENTIAL_RULES: OptionRules<Credential> = {
  token: "string?",
  username: "string?",
  password: "string?",
  certificate: "string?",
  key: "string?",
};

/** Types of the fields of a cluster configuration. */
export const CLUSTER_RULES: OptionRules<ClusterConfig> = {
  server: "string",
  namespace: "string?",
  certificateAuthority: "any?",
  serverName: "string?",
  insecureSkipTlsVerify: "boolean?",
  proxyUrl: "string?",
  credentials: {
    type: "object?",
    options: CREDENTIAL_RULES,
    custom: { current: "function", refresh: "function" },
    check: (credentials) => {
      if (!("current" in credentials)) checkClientPair(credentials);
    },
  },
  impersonate: {
    type: "object?",
    options: {
      user: "string",
      uid: "string?",
      groups: "strings?",
      extra: "object?",
    },
  },
};

/**
 * Checks the client certificate of a credential.
 *
 * @throws {TypeError} If it does not fit its key, or one of them is missing.
 */
export function checkClientPair(credential: Credential): void {
  checkPair(credential, {
    certificate: "the client certificate of the credentials",
    key: "the client key of the credentials",
    missing: { certificate: '"certificate"', key: '"key"' },
  });
}

/** Converts a fixed credential into a source of credentials. */
export function credentialSource(
  credentials: Credential | CredentialSource | undefined,
): CredentialSource {
  if (credentials !== undefined && "current" in credentials) return credentials;
  const fixed = Promise.resolve(credentials ?? {});
  return { current: () => fixed, refresh: () => fixed };
}
