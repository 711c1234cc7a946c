import { Buffer } from "node:buffer";
import type { ConnectionOptions } from "node:tls";

/** Where and how a transport connects. */
export interface TransportSettings {
  /** The URL of the API server; its path stands before every request's. */
  readonly server: string;
  /**
   * Whom the server's certificate may come from, in PEM.
   *
   * @default {the runtime's own authorities}
   */
  readonly certificateAuthority?: string | undefined;
  /**
   * The name that the server's certificate must have.
   *
   * @default {the host of `server`}
   */
  readonly serverName?: string | undefined;
  /**
   * Whether to accept any server certificate.
   *
   * @default {false}
   */
  readonly insecureSkipTlsVerify?: boolean | undefined;
  /** The client certificate with its chain, in PEM. */
  readonly certificate?: string | undefined;
  /** The private key of `certificate`, in PEM. */
  readonly key?: string | undefined;
  /**
   * The proxy to go through: `http:`, `https:` or `socks5:`.
   *
   * @default {none}
   */
  readonly proxyUrl?: string | undefined;
  /**
   * Whether requests will have headers of several lines.
   *
   * @default {false}
   */
  readonly repeatsHeaders?: boolean | undefined;
  /**
   * How long connecting may take, in milliseconds.
   *
   * @default {10_000}
   */
  readonly connectTimeout?: number | undefined;
}

/** How long connecting may take unless told otherwise, in milliseconds. */
export const CONNECT_TIMEOUT = 10_000;

/** How long a body may be to be read away instead of closing its connection. */
export const SHORT_BODY: number = 64 << 10;

/** The server's URL in the two parts that requests are made of. */
export interface ServerAddress {
  /** Scheme, host and port. */
  readonly origin: string;
  /** What stands before every path: empty, or a path without a last slash. */
  readonly prefix: string;
}

/**
 * Takes the URL of a server apart.
 *
 * @throws {TypeError} If it is no URL of HTTP or HTTPS.
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

/** A URL for people: without the user and password that it may hold. */
export function withoutUser(url: URL): string {
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  return shown.href;
}

/** The value of a header for basic authentication. */
export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** What TLS needs of a {@linkcode TransportSettings}, in the names of Node. */
export type TlsOptions = Pick<
  ConnectionOptions,
  "ca" | "cert" | "key" | "rejectUnauthorized" | "servername"
>;

/** What is trusted and shown when a server is connected to with TLS. */
export function tlsOptions(settings: TransportSettings): TlsOptions {
  const { certificateAuthority, certificate, key, serverName } = settings;
  return {
    ...(certificateAuthority && { ca: certificateAuthority }),
    ...(certificate && { cert: certificate, key }),
    ...(serverName && { servername: serverName }),
    rejectUnauthorized: !settings.insecureSkipTlsVerify,
  };
}
