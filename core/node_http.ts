import type { Server, ServerOptions } from "node:http";
import type { AddressInfo, Server as TcpServer } from "node:net";
import process from "node:process";

/**
 * Module `node:http`, without the cost of its import: an import reads every export,
 * including the one that loads Node's implementation of `fetch`, which takes 10 MiB.
 */
export function nodeHttp(): typeof import("node:http") {
  return process.getBuiltinModule("node:http");
}

/** Module `node:https`, without the cost of its import. */
export function nodeHttps(): typeof import("node:https") {
  return process.getBuiltinModule("node:https");
}

/** Pause between two looks for requests that take too long, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Options of a server whose requests must arrive within a time. Without the
 * interval, Node closes their connections up to half a minute later.
 *
 * @param timeout The time, in milliseconds.
 */
export function serverLimits(timeout: number): ServerOptions {
  return {
    headersTimeout: timeout,
    requestTimeout: timeout,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  };
}

/**
 * Starts to listen; returns the port.
 *
 * @param action What cannot be done if the server cannot listen, for the error.
 * @throws {Error} If the port is in use or may not be used.
 */
export async function listenOn(
  server: TcpServer,
  address: { readonly port: number; readonly host: string },
  action: string,
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    // The listener stays: an unhandled error event would end the process.
    server.on("error", (error) =>
      reject(
        new Error(`Cannot ${action}: ${error.message}`, { cause: error }),
      ));
    server.listen(address, resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** Stops listening and closes all connections. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections?.();
  await closed;
}
