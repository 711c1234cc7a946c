import { Buffer } from "node:buffer";
import type {
  IncomingMessage,
  Server,
  ServerOptions,
  ServerResponse,
} from "node:http";
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
 * Time after which a connection without a request is closed, in milliseconds: more than
 * the 90 s of Go's clients, such as API servers. A request that meets the end of its
 * connection is lost, and they do not repeat a POST.
 */
const IDLE_TIMEOUT_MS = 120_000;

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
    keepAliveTimeout: IDLE_TIMEOUT_MS,
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

/**
 * Reads the body of a request.
 *
 * @param hold Callback for each part; if it throws, reading stops, and the error
 * rejects the promise.
 */
export async function readBody(
  request: IncomingMessage,
  hold: (chunk: Uint8Array) => void,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  // Events instead of a loop, which would close the connection before the
  // refusal is sent.
  return await new Promise((resolve, reject) => {
    const onData = (chunk: Uint8Array) => {
      try {
        hold(chunk);
        chunks.push(chunk);
      } catch (error) {
        request.off("data", onData);
        request.pause();
        chunks.length = 0;
        reject(error);
      }
    };
    request.on("data", onData);
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", reject);
  });
}

/** Answers with a line of text; does nothing if the answer has begun. */
export function replyText(
  response: ServerResponse,
  status: number,
  text: string,
): void {
  if (response.headersSent || response.destroyed) return;
  // An unread body would block the connection.
  if (status >= 400) response.setHeader("connection", "close");
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
}
