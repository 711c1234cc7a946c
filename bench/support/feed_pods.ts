/**
 * Sends the watch events of a number of Pods to the first connection on the
 * port that it prints, so that the measured process does not create them:
 * `feed_pods.ts COUNT`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import process from "node:process";
import { PodFactory } from "./pods.ts";

const PER_WRITE = 32;

async function send(socket: Socket, count: number): Promise<void> {
  const pods = new PodFactory();
  const lineFeed = Buffer.from("\n");
  for (let first = 0; first < count; first += PER_WRITE) {
    const parts: Buffer[] = [];
    for (let i = first; i < Math.min(first + PER_WRITE, count); i++) {
      parts.push(pods.event("ADDED", i), lineFeed);
    }
    if (!socket.write(Buffer.concat(parts))) await once(socket, "drain");
  }
  socket.end();
}

const server = createServer((socket) => {
  server.close();
  void send(socket, Number(process.argv[2]));
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${port}\n`);
});
