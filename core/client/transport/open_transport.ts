import { currentRuntime } from "./runtime.ts";
import type { HttpTransport } from "./transport.ts";
import { serverAddress, type TransportOptions } from "./transport_options.ts";

/**
 * Opens the transport of the current runtime and loads only the module for it.
 *
 * @throws {TypeError} If the server or the proxy is not a supported URL.
 */
export async function openHttpTransport(
  options: TransportOptions,
): Promise<HttpTransport> {
  serverAddress(options.server);
  switch (currentRuntime()) {
    case "deno": {
      const { openHttpTransport } = await import("./transport_deno.ts");
      return await openHttpTransport(options);
    }
    case "bun": {
      const { openHttpTransport } = await import("./transport_bun.ts");
      return await openHttpTransport(options);
    }
    case "node": {
      const { openHttpTransport } = await import("./transport_node.ts");
      return openHttpTransport(options);
    }
  }
}
