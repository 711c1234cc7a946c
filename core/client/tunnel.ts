import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { basicAuthorization, withoutUser } from "./transport_settings.ts";

/** How {@linkcode openTunnel} connects. */
export interface TunnelOptions {
  /** Ends the attempt when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** How long it may take, in milliseconds. */
  readonly timeout: number;
}

/**
 * Asks an HTTP proxy for a connection to a host (the method CONNECT).
 *
 * @param proxyUrl The proxy, with user and password if it wants them.
 * @param target The host and port, such as `10.0.0.1:6443`.
 * @throws {TypeError} If the proxy is not one of HTTP.
 * @throws {Error} If the proxy refuses or does not answer.
 */
export function openTunnel(
  proxyUrl: string,
  target: string,
  options: TunnelOptions,
): Promise<Socket> {
  const proxy = new URL(proxyUrl);
  const fail = (why: string, received: unknown) =>
    `Cannot go through the proxy ${
      withoutUser(proxy)
    }: ${why}: received ${received}`;
  if (proxy.protocol !== "http:" && proxy.protocol !== "https:") {
    return Promise.reject(
      new TypeError(
        fail("WebSockets need http: or https:", proxy.protocol),
      ),
    );
  }
  const send = proxy.protocol === "https:" ? httpsRequest : httpRequest;
  const user = decodeURIComponent(proxy.username);
  const password = decodeURIComponent(proxy.password);
  return new Promise((resolve, reject) => {
    const request = send({
      host: proxy.hostname.replace(/^\[|\]$/g, ""),
      port: proxy.port || (proxy.protocol === "https:" ? 443 : 80),
      method: "CONNECT",
      path: target,
      agent: false,
      timeout: options.timeout,
      headers: {
        host: target,
        ...(user && {
          "proxy-authorization": basicAuthorization(user, password),
        }),
      },
      signal: options.signal,
    });
    request.on("connect", (response, socket) => {
      if (response.statusCode === 200) return resolve(socket as Socket);
      socket.destroy();
      reject(new Error(fail("it refused", response.statusCode)));
    });
    request.on("timeout", () => {
      request.destroy(new Error(fail("it did not answer", "nothing")));
    });
    request.on("error", reject);
    request.end();
  });
}
