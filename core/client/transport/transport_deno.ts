import type { HttpTransport } from "./transport.ts";
import { FetchTransport } from "./transport_fetch.ts";
import type { TransportOptions } from "./transport_options.ts";

/** Part of the `Deno` global that the transport uses. */
interface DenoRuntime {
  createHttpClient(options: {
    readonly caCerts?: readonly string[] | undefined;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
    readonly http2?: boolean | undefined;
    readonly proxy?: {
      readonly url: string;
      readonly basicAuth?: { username: string; password: string };
    } | undefined;
  }): { close(): void };
}

/**
 * Opens a transport over Deno's `fetch`, whose HTTP client has the connection
 * pool and the certificates. Another server name and unverified server
 * certificates, which `fetch` does not support, require the transport over
 * sockets, which has no back-pressure in Deno.
 */
export async function openHttpTransport(
  options: TransportOptions,
): Promise<HttpTransport> {
  if (options.insecureSkipTlsVerify || options.serverName) {
    const { openHttpTransport } = await import("./transport_node.ts");
    return openHttpTransport(options);
  }
  const { certificateAuthority, certificate, key } = options;
  const { Deno } = globalThis as unknown as { readonly Deno: DenoRuntime };
  const client = Deno.createHttpClient({
    ...(certificateAuthority && { caCerts: [certificateAuthority] }),
    ...(certificate && { cert: certificate, key }),
    // HTTP/2 would put all watches on one connection and its flow control.
    http2: false,
    proxy: proxyOf(options.proxyUrl),
  });
  return new FetchTransport(options, {
    init: { client },
    close: () => client.close(),
  });
}

function proxyOf(proxyUrl: string | undefined): {
  readonly url: string;
  readonly basicAuth?: { username: string; password: string };
} | undefined {
  if (proxyUrl === undefined) return undefined;
  const url = new URL(proxyUrl);
  const username = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  url.username = "";
  url.password = "";
  return username === ""
    ? { url: url.href }
    : { url: url.href, basicAuth: { username, password } };
}
