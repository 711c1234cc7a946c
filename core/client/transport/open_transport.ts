import type { HttpTransport } from "./transport.ts";
import { serverAddress, type TransportOptions } from "./transport_options.ts";

/**
 * Opens a transport; loads its module with the first.
 *
 * @throws {TypeError} If the server is not a URL.
 */
export async function openHttpTransport(
  options: TransportOptions,
): Promise<HttpTransport> {
  serverAddress(options.server);
  const { UndiciTransport } = await import("./undici_transport.ts");
  return new UndiciTransport(options);
}
