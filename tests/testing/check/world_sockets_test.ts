import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { type AddressInfo, connect, createServer, Socket } from "node:net";
import { test } from "node:test";
import tls from "node:tls";
import { replaceSockets } from "../../../dev/testing/check/world_sockets.ts";

/** Runs with connections held back but for one address. */
async function withSockets(
  allowed: string | undefined,
  body: (asked: string[], waits: () => number) => Promise<void>,
): Promise<void> {
  const asked: string[] = [];
  let waits = 0;
  const restore = replaceSockets({
    refuse(address) {
      asked.push(address);
      return address === allowed ? undefined : new Error("held back");
    },
    waiting: (change) => waits += change,
  });
  try {
    await body(asked, () => waits);
  } finally {
    restore();
  }
}

/** The error of a connection. */
async function errorOf(
  opened: { once(event: string, listener: (error: Error) => void): unknown },
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<Error>();
  opened.once("error", resolve);
  const { message, code } = await promise as NodeJS.ErrnoException;
  return `${code}: ${message}`;
}

test("Sockets held back: those of net, tls and http2 are refused", async () => {
  await withSockets(undefined, async (asked) => {
    const port = 5432;
    const host = "db.example.com";
    const opened = [
      () => connect(port, host),
      () => connect({ port, host }),
      () => new Socket().connect(port, host),
      () => tls.connect({ port, host }),
    ];
    for (const open of opened) {
      const error = "ECONNREFUSED: connect ECONNREFUSED db.example.com:5432";
      assert.equal(await errorOf(open()), error);
    }
    assert.match(await errorOf(connect("/run/db.sock")), /run\/db\.sock$/);
    assert.match(await errorOf(connect(port)), / localhost:5432$/);
    assert.match(
      await errorOf(http2.connect("http://api.example.com")),
      / api\.example\.com:80$/,
    );
    assert.deepEqual([...new Set(asked)], [
      "db.example.com:5432",
      "/run/db.sock",
      "localhost:5432",
      "api.example.com:80",
    ]);
  });
});

test("Sockets held back: a WebSocket fails and closes", async () => {
  await withSockets(undefined, async (asked) => {
    const socket = new WebSocket("wss://api.example.com/events");
    const [event] = await once(socket, "close") as [CloseEvent];
    assert.equal(event.code, 1006);
    assert.equal(socket.readyState, WebSocket.CLOSED);
    assert.deepEqual(asked, ["api.example.com:443"]);
  });
});

test("Sockets held back: connect of Deno and Bun is refused", async () => {
  const { Deno: deno, Bun: bun } = globalThis as unknown as Record<
    "Deno" | "Bun",
    Record<string, (options: object) => Promise<unknown>> | undefined
  >;
  const to = { hostname: "db.example.com", port: 5432, socket: {} };
  await withSockets(undefined, async () => {
    for (
      const opens of [deno?.["connect"], deno?.["connectTls"], bun?.["connect"]]
    ) {
      if (opens === undefined) continue;
      await assert.rejects(opens(to), /ECONNREFUSED db\.example\.com:5432/);
    }
  });
});

test("Sockets held back: one that may go waits for its answer", async () => {
  const server = createServer((socket) => socket.pipe(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await withSockets(`127.0.0.1:${port}`, async (_asked, waits) => {
    const socket = connect(port, "127.0.0.1");
    assert.equal(waits(), 1);
    await once(socket, "connect");
    assert.equal(waits(), 0);
    socket.write("hello");
    assert.equal(waits(), 1);
    const [answer] = await once(socket, "data");
    assert.equal(String(answer), "hello");
    assert.equal(waits(), 0);
    socket.end();
    await once(socket, "close");
    assert.equal(waits(), 0);
  });
  server.close();
});
