import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect as connectSocket, type Socket } from "node:net";
import { deadline, systemClock } from "../../clock.ts";
import { socks5Connect } from "./socks5.ts";
import { basicAuthorization, withoutUser } from "./transport_settings.ts";

/** How {@linkcode openTunnel} connects. */
export interface TunnelOptions {
  /** Ends the attempt when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** How long it may take, in milliseconds. */
  readonly timeout: number;
}

/** A proxy and whom it shall connect to. */
interface Route {
  readonly proxy: URL;
  readonly username: string;
  readonly password: string;
  readonly host: string;
  readonly port: number;
}

/**
 * Asks a proxy for a connection to a server: one of HTTP by the method CONNECT,
 * or one of SOCKS5.
 *
 * @param proxyUrl The proxy, with user and password if it wants them.
 * @param server The URL of the server.
 * @throws {TypeError} If the proxy is of another kind.
 * @throws {Error} If the proxy refuses or does not answer in time.
 */
export async function openTunnel(
  proxyUrl: string,
  server: URL,
  options: TunnelOptions,
): Promise<Socket> {
  const proxy = new URL(proxyUrl);
  const { signal, timeout } = options;
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
      `Cannot go through the proxy ${
        withoutUser(proxy)
      }: it must be one of http:, https: and socks5:: received ${proxy.protocol}`,
    );
  }
  const failure = (received: string, options?: ErrorOptions) =>
    new Error(
      `Cannot go through the proxy ${
        withoutUser(proxy)
      }: it must connect to the server: received ${received}`,
      options,
    );
  const connect = async (ended: AbortSignal) => {
    try {
      return await connectVia(route, ended);
    } catch (error) {
      const received = error instanceof Error ? error.message : String(error);
      throw failure(received, { cause: error });
    }
  };
  return await deadline(connect, timeout, {
    clock: systemClock,
    signal,
    onTimeout: () => failure(`nothing within ${timeout} ms`),
  });
}

const TUNNELS: Readonly<
  Record<string, (route: Route, signal: AbortSignal) => Promise<Socket>>
> = { "http:": httpTunnel, "https:": httpTunnel, "socks5:": socksTunnel };

function httpTunnel(route: Route, signal: AbortSignal): Promise<Socket> {
  const { host, password, port, proxy, username } = route;
  const secure = proxy.protocol === "https:";
  const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)({
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
    request.on("connect", (response, socket) => {
      if (response.statusCode === 200) return resolve(socket as Socket);
      socket.destroy();
      reject(new Error(`Cannot connect: received ${response.statusCode}`));
    });
    request.on("error", reject);
    request.end();
  });
}

async function socksTunnel(
  route: Route,
  signal: AbortSignal,
): Promise<Socket> {
  const { proxy } = route;
  const socket = connectSocket(
    Number(proxy.port) || 1080,
    proxy.hostname.replace(/^\[|\]$/g, ""),
  );
  const onAbort = () => socket.destroy(new Error("Cannot wait any longer"));
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
