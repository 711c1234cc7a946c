import { Buffer } from "node:buffer";
import type { ConnectionOptions } from "node:tls";

/** Options of a transport: server, TLS and proxy. */
export interface TransportOptions {
  /** URL of the API server; its path is the prefix of every request path. */
  readonly server: string;
  /**
   * Certificate authorities for the server's certificate, in PEM. Defaults to
   * those of the runtime.
   */
  readonly certificateAuthority?: string | undefined;
  /**
   * Name that the server's certificate must have. Defaults to the host of
   * `server`.
   */
  readonly serverName?: string | undefined;
  /**
   * Whether to accept any server certificate. Insecure: connections can be
   * intercepted.
   *
   * @default {false}
   */
  readonly insecureSkipTlsVerify?: boolean | undefined;
  /** Client certificate with its chain, in PEM. */
  readonly certificate?: string | undefined;
  /** Private key of `certificate`, in PEM. */
  readonly key?: string | undefined;
  /**
   * URL of a proxy, with the scheme `http:`, `https:`, `socks5:` or `socks5h:`.
   * Connections are direct by default.
   */
  readonly proxyUrl?: string | undefined;
  /**
   * Time limit for connecting, in milliseconds.
   *
   * @default {10_000}
   */
  readonly connectTimeout?: number | undefined;
}

/** Default time limit for connecting, in milliseconds. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** Maximum size of a body that is discarded by reading it, in bytes. */
export const SHORT_BODY_BYTES: number = 64 << 10;

/** URL of a server, split into origin and path prefix. */
export interface ServerAddress {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Prefix of every path: empty, or a path without a trailing slash. */
  readonly prefix: string;
}

/**
 * Splits the URL of a server.
 *
 * @throws {TypeError} If it is not an HTTP or HTTPS URL.
 */
export function serverAddress(server: string): ServerAddress {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") {
    throw new TypeError(
      `Cannot connect to a cluster: "server" must be a URL with http: or https:: received ${
        JSON.stringify(url === undefined ? server : withoutUser(url))
      }`,
    );
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, "") };
}

/** Formats a URL for logs and errors, without user name and password. */
export function withoutUser(url: URL): string {
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  return shown.href;
}

/** Encodes the value of an authorization header for basic authentication. */
export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** TLS options of Node. */
export type TlsOptions = Pick<
  ConnectionOptions,
  | "allowPartialTrustChain"
  | "ca"
  | "cert"
  | "key"
  | "rejectUnauthorized"
  | "servername"
>;

/** Derives the TLS options of Node from those of a transport. */
export function tlsOptions(options: TransportOptions): TlsOptions {
  const { certificateAuthority, certificate, key, serverName } = options;
  return {
    ...(certificateAuthority && {
      ca: certificateAuthority,
      // As in Go, each certificate of the bundle is trusted, signed by whomever.
      allowPartialTrustChain: true,
    }),
    ...(certificate && { cert: certificate, key }),
    ...(serverName && { servername: serverName }),
    rejectUnauthorized: !options.insecureSkipTlsVerify,
  };
}
