import { untyped } from "@coracle/operator";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { until, withExample } from "./run_example.ts";

const Channel = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Channel",
});

test("The chat bridge counts the messages of a room, and reconnects", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const sockets: WebSocket[] = [];
  server.on("connection", (socket) => sockets.push(socket));
  const { port } = server.address() as AddressInfo;
  try {
    await withExample("chat_bridge.ts", async ({ client }) => {
      const key = { namespace: "default", name: "harbour" };
      const status = async () =>
        (await client.get(Channel, key))["status"] as
          | { messages?: number; lastMessage?: string }
          | undefined;
      const counts = (messages: number, lastMessage?: string) =>
        until(`${messages} messages`, async () => {
          const now = await status();
          return now?.messages === messages &&
            now.lastMessage === lastMessage;
        });
      const say = (room: string, text: string) =>
        sockets.at(-1)!.send(JSON.stringify({ room, text }));

      await client.create(Channel, {
        metadata: { ...key },
        spec: { room: "#harbour" },
      });
      await counts(0);
      const first = await until("a connection", () => sockets[0]);
      first.send("no JSON");
      say("#elsewhere", "Nobody listens");
      say("#harbour", "Ahoy");
      say("#harbour", "Anchors aweigh");
      await counts(2, "Anchors aweigh");

      first.terminate();
      await until("a second connection", () => sockets[1]);
      say("#harbour", "Back again");
      await counts(3, "Back again");
    }, { CHAT_URL: `ws://127.0.0.1:${port}/` })();
  } finally {
    for (const socket of sockets) socket.terminate();
    await new Promise((resolve) => server.close(resolve));
  }
});
