import { connect as connectSocket, type Socket } from "node:net";
import { type Clock, deadline, systemClock } from "../../clock.ts";
import { nodeHttp, nodeHttps } from "../../node_http.ts";
import { socks5Connect } from "./socks5.ts";
import { basicAuthorization, withoutUser } from "./transport_options.ts";
import { errorMessage } from "../../error_text.ts";

/** Options of {@linkcode openTunnel}. */
export interface TunnelOptions {
  /** Signal that ends the attempt. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit, in milliseconds. */
  readonly timeout: number;
  /** Clock of the time limit. */
  readonly clock?: Clock | undefined;
}

/** Proxy, and the server that it connects to. */
interface Route {
  readonly proxy: URL;
  readonly username: string;
  readonly password: string;
  readonly host: string;
  readonly port: number;
}

/**
 * Connects to a server through a proxy: an HTTP proxy, with the method CONNECT,
 * or a SOCKS5 proxy.
 *
 * @param proxyUrl URL of the proxy, with user and password if required.
 * @param server URL of the server.
 * @throws {TypeError} If the scheme of the proxy is not supported.
 * @throws {Error} If the proxy refuses or exceeds the time limit.
 */
export async function openTunnel(
  proxyUrl: string,
  server: URL,
  options: TunnelOptions,
): Promise<Socket> {
  const proxy = new URL(proxyUrl);
  const { signal, timeout, clock = systemClock } = options;
  const route: Route = {
    proxy,
    username: decodeURIComponent(proxy.username),
    password: decodeURIComponent(proxy.password),
    host: server.hostname.replace(/^\[|\]$/g, ""),
    port: Number(server.port) || (server.protocol === "https:" ? 443 : 80),
  };
  const connectVia = TUNNELS[proxy.protocol];
  if (connectVia === undefined) {
    throw new TypeError(
      `Cannot connect through the proxy ${
        withoutUser(proxy)
      }: its scheme must be http:, https:, socks5: or socks5h:: received ${proxy.protocol}`,
    );
  }
  const failure = (received: string, options?: ErrorOptions) =>
    new Error(
      `Cannot connect through the proxy ${
        withoutUser(proxy)
      }: it must connect to the server: received ${received}`,
      options,
    );
  const connect = async (ended: AbortSignal) => {
    try {
      return await connectVia(route, ended);
    } catch (error) {
      const received = errorMessage(error);
      throw failure(received, { cause: error });
    }
  };
  return await deadline(connect, timeout, {
    clock,
    signal,
    onTimeout: () => failure(`nothing within ${timeout} ms`),
  });
}

const TUNNELS: Readonly<
  Record<string, (route: Route, signal: AbortSignal) => Promise<Socket>>
> = {
  "http:": httpTunnel,
  "https:": httpTunnel,
  "socks5:": socksTunnel,
  // The proxy resolves names: so it does for Go with either scheme.
  "socks5h:": socksTunnel,
};

function httpTunnel(route: Route, signal: AbortSignal): Promise<Socket> {
  const { host, password, port, proxy, username } = route;
  const secure = proxy.protocol === "https:";
  const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    const request = (secure ? nodeHttps() : nodeHttp()).request({
      host: proxy.hostname.replace(/^\[|\]$/g, ""),
      port: proxy.port || (secure ? 443 : 80),
      method: "CONNECT",
      path: target,
      agent: false,
      headers: {
        host: target,
        ...(username && {
          "proxy-authorization": basicAuthorization(username, password),
        }),
      },
      signal,
    });
    request.on("connect", (response, socket, head) => {
      if (response.statusCode === 200) {
        if (head.byteLength > 0) socket.unshift(head);
        return resolve(socket as Socket);
      }
      socket.destroy();
      reject(new Error(`Cannot connect: received ${response.statusCode}`));
    });
    request.on("error", reject);
    request.end();
  });
}

async function socksTunnel(route: Route, signal: AbortSignal): Promise<Socket> {
  const { proxy } = route;
  const socket = connectSocket(
    Number(proxy.port) || 1080,
    proxy.hostname.replace(/^\[|\]$/g, ""),
  );
  const onAbort = () =>
    socket.destroy(new Error("Cannot connect: the attempt was ended"));
  signal.addEventListener("abort", onAbort);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    await socks5Connect(socket, route);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
