import type { HttpTransport } from "./transport.ts";
import { FetchTransport } from "./transport_fetch.ts";
import { tlsOptions, type TransportOptions } from "./transport_options.ts";

/**
 * Opens a transport over Bun's `fetch`, which takes certificates and a proxy
 * per call. Headers with several lines and SOCKS proxies, which `fetch` does
 * not support, require the transport over sockets.
 */
export async function openHttpTransport(
  options: TransportOptions,
): Promise<HttpTransport> {
  if (options.repeatsHeaders || options.proxyUrl?.startsWith("socks")) {
    const { openHttpTransport } = await import("./transport_node.ts");
    return openHttpTransport(options);
  }
  return new FetchTransport(options, {
    init: {
      tls: { ...tlsOptions(options), serverName: options.serverName },
      ...(options.proxyUrl && { proxy: options.proxyUrl }),
      // A watch may be silent for longer than Bun's default timeout.
      timeout: false,
    },
    close() {},
  });
}
