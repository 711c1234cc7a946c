import type { ConnectionOptions } from "node:tls";
import type { TransportSettings } from "./transport_settings.ts";

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
