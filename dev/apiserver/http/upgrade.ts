import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { ChunkQueue, nodeHttp } from "@coracle/operator/internal";
import type { MessageStream } from "./message_stream.ts";
import { isStream, type ServerResponse, type Upgrade } from "./exchange.ts";

/** HTTP request to upgrade a connection to a WebSocket. */
export interface UpgradeRequest {
  readonly message: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes received after the request. */
  readonly head: Uint8Array;
}

/** Upgrades a connection to a WebSocket and serves it until it ends. */
export async function acceptUpgrade(
  { message, socket, head }: UpgradeRequest,
  { protocol, serve }: Upgrade,
): Promise<void> {
  const { WebSocketServer } = await import("ws");
  const server = new WebSocketServer({
    noServer: true,
    handleProtocols: () => protocol,
  });
  const webSocket = await new Promise<WebSocket>((resolve) =>
    server.handleUpgrade(message, socket, Buffer.from(head), resolve)
  );
  await serve(streamOf(webSocket));
}

/** Rejects an upgrade with a response and ends the connection. */
export function refuseUpgrade(
  { socket }: UpgradeRequest,
  { status, headers, body }: ServerResponse,
): void {
  const bytes = isStream(body) ? new Uint8Array() : Buffer.concat(
    body instanceof Uint8Array ? [body] : [...body],
  );
  const lines = Object.entries({
    ...headers,
    "content-length": String(bytes.length),
    connection: "close",
  }).flatMap(([name, value]) =>
    [value].flat().map((text) => `${name}: ${text}\r\n`)
  );
  socket.write(
    `HTTP/1.1 ${status} ${nodeHttp().STATUS_CODES[status] ?? ""}\r\n`,
  );
  socket.write(`${lines.join("")}\r\n`);
  socket.end(bytes);
}

function streamOf(webSocket: WebSocket): MessageStream {
  const messages = new ChunkQueue({
    pause: () => webSocket.pause(),
    resume: () => webSocket.resume(),
    leave: () => webSocket.terminate(),
  });
  webSocket.binaryType = "nodebuffer";
  webSocket.on("message", (data) => messages.push(data as Uint8Array));
  webSocket.on("error", (error) => messages.fail(error));
  webSocket.on("close", () => messages.end());
  return {
    messages,
    send: (message) =>
      new Promise((resolve, reject) =>
        webSocket.send(
          message,
          { binary: true },
          (error) => error ? reject(error) : resolve(),
        )
      ),
    close() {
      webSocket.close(1000);
      return Promise.resolve();
    },
  };
}
