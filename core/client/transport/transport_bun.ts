import type { HttpTransport } from "./transport.ts";
import { FetchTransport } from "./transport_fetch.ts";
import type { TransportSettings } from "./transport_settings.ts";

/**
 * Opens a transport over Bun's own `fetch`, which takes certificates and a proxy
 * with every call and keeps connections apart by them. What it cannot do, headers
 * of several lines and SOCKS proxies, goes through undici.
 */
export async function openHttpTransport(
  settings: TransportSettings,
): Promise<HttpTransport> {
  if (settings.repeatsHeaders || settings.proxyUrl?.startsWith("socks")) {
    const { openHttpTransport } = await import("./transport_node.ts");
    return openHttpTransport(settings);
  }
  const { certificateAuthority, certificate, key, serverName } = settings;
  return new FetchTransport(settings, {
    init: {
      tls: {
        ...(certificateAuthority && { ca: certificateAuthority }),
        ...(certificate && { cert: certificate, key }),
        ...(serverName && { serverName }),
        rejectUnauthorized: !settings.insecureSkipTlsVerify,
      },
      ...(settings.proxyUrl && { proxy: settings.proxyUrl }),
      // A watch may be silent for longer than Bun waits by default.
      timeout: false,
    },
    close() {},
  });
}
