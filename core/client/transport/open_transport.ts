import { currentRuntime } from "./runtime.ts";
import type { HttpTransport } from "./transport.ts";
import { serverAddress, type TransportOptions } from "./transport_options.ts";

/**
 * Opens the transport of the runtime that this is. Only its module is loaded.
 *
 * @throws {TypeError} If the server or the proxy is no URL that it can use.
 */
export async function openHttpTransport(
  settings: TransportOptions,
): Promise<HttpTransport> {
  serverAddress(settings.server);
  switch (currentRuntime()) {
    case "deno": {
      const { openHttpTransport } = await import("./transport_deno.ts");
      return await openHttpTransport(settings);
    }
    case "bun": {
      const { openHttpTransport } = await import("./transport_bun.ts");
      return await openHttpTransport(settings);
    }
    case "node": {
      const { openHttpTransport } = await import("./transport_node.ts");
      return openHttpTransport(settings);
    }
  }
}
