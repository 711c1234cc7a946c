import type { HttpTransport } from "./transport.ts";
import { FetchTransport } from "./transport_fetch.ts";
import type { TransportOptions } from "./transport_options.ts";

/**
 * Opens a transport over Bun's `fetch`, which takes certificates and a proxy per
 * call. Headers with several lines and SOCKS proxies, which it does not support,
 * use undici.
 */
export async function openHttpTransport(
  settings: TransportOptions,
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
      // A watch may be silent for longer than Bun's default timeout.
      timeout: false,
    },
    close() {},
  });
}
