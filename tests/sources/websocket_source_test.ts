import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { VirtualClock } from "@coracle/dev";
import { jsonLogger } from "@coracle/operator/client";
import { websocketSource } from "@coracle/operator/sources";
import { gadget, recordedContext } from "../support/source_context.ts";
import { inTime } from "../support/in_time.ts";
import { startTlsServer } from "../support/tls_server.ts";
import { until } from "../support/until.ts";

/** A server on loopback, and the connections and headers that it has seen. */
async function startServer() {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const sockets: WebSocket[] = [];
  const authorizations: (string | undefined)[] = [];
  const paths: (string | undefined)[] = [];
  const received: string[] = [];
  server.on("connection", (socket, request) => {
    sockets.push(socket);
    socket.on("message", (data) => received.push(String(data)));
    authorizations.push(request.headers.authorization);
    paths.push(request.url);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}/chat`,
    sockets,
    authorizations,
    paths,
    received,
    stop: async () => {
      for (const socket of sockets) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("websocketSource triggers what messages are about and sends its headers", async () => {
  const server = await startServer();
  const source = websocketSource({
    name: "chat",
    url: `${server.url}?room=1`,
    protocols: ["orders.v1"],
    headers: () => Promise.resolve({ authorization: "Bearer of-this-test" }),
    primaries: (message) => [JSON.parse(new TextDecoder().decode(message)).key],
  });
  const context = recordedContext(new VirtualClock());
  await source.start(context);
  const socket = await until("a connection", () => server.sockets[0]);
  socket.send("no json");
  socket.send('{"key":"default/a"}');
  await until("a trigger", () => context.triggered.length > 0);
  assert.deepEqual(context.triggered, ["default/a"]);
  assert.deepEqual(context.events, [undefined]);
  assert.deepEqual(server.authorizations, ["Bearer of-this-test"]);
  assert.deepEqual(server.paths, ["/chat?room=1"]);
  assert.equal(socket.protocol, "orders.v1");
  assert.equal(source.health?.().status, "healthy");
  await inTime("it stops", source.stop());
  await server.stop();
});

test("websocketSource warns once a minute about unreadable messages", async () => {
  const server = await startServer();
  const lines: string[] = [];
  const log = jsonLogger({
    level: "warn",
    write: (line) => lines.push(line),
  });
  let messages = 0;
  const source = websocketSource({
    name: "chat",
    url: server.url,
    primaries() {
      messages++;
      throw new Error("no JSON");
    },
  });
  await source.start(recordedContext(new VirtualClock(), [], { log }));
  const socket = await until("a connection", () => server.sockets[0]);
  for (let count = 0; count < 100; count++) socket.send("garbage");
  await until("all messages", () => messages === 100);
  await inTime("it stops", source.stop());
  await server.stop();
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(lines[0] ?? "", /"source":"chat".*no JSON/);
});

test("websocketSource passes the known primaries to its mapper", async () => {
  const server = await startServer();
  const source = websocketSource({
    name: "chat",
    url: server.url,
    primaries(message, known) {
      const wanted = new TextDecoder().decode(message);
      if (wanted === "number") return 5 as never;
      if (wanted === "numbers") return [5 as never];
      return known.list().filter(({ metadata }) =>
        metadata.uid === wanted && known.has(`default/${metadata.name}`)
      ).map(({ metadata }) => ({
        namespace: metadata.namespace,
        name: metadata.name,
      }));
    },
  });
  const primaries = [gadget("a"), gadget("b")];
  const context = recordedContext(new VirtualClock(), primaries);
  await source.start(context);
  const socket = await until("a connection", () => server.sockets[0]);
  for (const text of ["number", "numbers", "uid-c", "uid-b"]) socket.send(text);
  await until("a trigger", () => context.triggered.length > 0);
  assert.deepEqual(context.triggered, ["default/b"]);
  await inTime("it stops", source.stop());
  await server.stop();
});

test("websocketSource reconnects after a lost connection, and triggers everything", async () => {
  const server = await startServer();
  const clock = new VirtualClock();
  const context = recordedContext(clock, [gadget("a"), gadget("b")]);
  let tokens = 0;
  const source = websocketSource({
    name: "chat",
    url: server.url,
    headers: () => ({ authorization: `Bearer ${++tokens}` }),
    primaries: () => [],
    random: () => 0,
  });
  await source.start(context);
  const first = await until("a connection", () => server.sockets[0]);
  first.terminate();
  await until("unhealthy", () => source.health?.().status === "unhealthy");
  await until("a pause", () => clock.pendingTimers > 0);
  await clock.advance(499);
  assert.ok(clock.pendingTimers > 0, "the first pause is half a second");
  await clock.advance(1);
  const second = await until("a second one", () => server.sockets[1]);
  await until("triggers", () => context.triggered.length === 2);
  await until("healthy", () => source.health?.().status === "healthy");
  second.close();
  await until("unhealthy", () => source.health?.().status === "unhealthy");
  await until("a pause", () => clock.pendingTimers > 0);
  await clock.advance(999);
  assert.ok(clock.pendingTimers > 0, "the second pause is longer");
  await clock.advance(1);
  await until("a third one", () => server.sockets[2]);
  assert.deepEqual(server.authorizations, ["Bearer 1", "Bearer 2", "Bearer 3"]);
  await until("more triggers", () => context.triggered.length === 4);
  await inTime("it stops", source.stop());
  assert.equal(clock.pendingTimers, 0);
  await server.stop();
});

test("websocketSource closes a connection whose onOpen fails, and opens another", async () => {
  const server = await startServer();
  const clock = new VirtualClock();
  let opened = 0;
  const source = websocketSource({
    name: "chat",
    url: server.url,
    primaries: () => [],
    async onOpen() {
      await Promise.resolve();
      if (opened++ === 0) throw new Error("no subscription");
    },
  });
  await source.start(recordedContext(clock));
  try {
    const first = await until("a connection", () => server.sockets[0]);
    await until(
      "unhealthy",
      () => /no subscription/.test(source.health?.().message ?? ""),
    );
    await until("it is closed", () => first.readyState === first.CLOSED);
    await until("a pause", () => clock.pendingTimers > 0);
    await clock.advance(1_000);
    await until("healthy", () => source.health?.().status === "healthy");
    assert.equal(server.sockets.length, 2);
  } finally {
    await inTime("it stops", source.stop());
    await server.stop();
  }
});

test("websocketSource triggers everything once it has subscribed again", async () => {
  const server = await startServer();
  const clock = new VirtualClock();
  const context = recordedContext(clock, [gadget("a"), gadget("b")]);
  const before: number[] = [];
  let attempts = 0;
  const source = websocketSource({
    name: "chat",
    url: server.url,
    headers() {
      // The runs of the start may be over long before the first connection.
      if (attempts++ === 0) throw new Error("no token");
      return {};
    },
    primaries: () => [],
    async onOpen({ send }) {
      await send(new TextEncoder().encode("subscribe"));
      before.push(context.triggered.length);
    },
  });
  await source.start(context);
  try {
    await until("a pause", () => clock.pendingTimers > 0);
    await clock.advance(1_000);
    await until("triggers", () => context.triggered.length === 2);
    server.sockets[0]?.terminate();
    await until("a pause", () => clock.pendingTimers > 0);
    await clock.advance(2_000);
    await until("triggers", () => context.triggered.length === 4);
    assert.deepEqual(before, [0, 2]);
  } finally {
    await inTime("it stops", source.stop());
    await server.stop();
  }
});

test("websocketSource sends the messages of an onOpen that takes send alone", async () => {
  const server = await startServer();
  const source = websocketSource({
    name: "chat",
    url: server.url,
    primaries: () => [],
    onOpen: ({ send }) => send(new TextEncoder().encode("subscribe")),
  });
  await source.start(recordedContext(new VirtualClock()));
  try {
    await until("a subscription", () => server.received.length > 0);
    assert.deepEqual(server.received, ["subscribe"]);
    assert.equal(source.health?.().status, "healthy");
  } finally {
    await inTime("it stops", source.stop());
    await server.stop();
  }
});

test("websocketSource stops while it waits for a server that is away", async () => {
  const server = await startServer();
  await server.stop();
  const clock = new VirtualClock();
  const source = websocketSource({
    name: "chat",
    url: server.url,
    primaries: () => [],
  });
  await source.start(recordedContext(clock));
  assert.equal(source.health?.().status, "unhealthy");
  await until("a pause", () => clock.pendingTimers > 0);
  await inTime("it stops", source.stop());
  assert.equal(clock.pendingTimers, 0);
});

test("websocketSource stops while it connects to a server that does not answer", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const source = websocketSource({
    name: "chat",
    url: `ws://127.0.0.1:${port}/`,
    primaries: () => [],
  });
  await source.start(recordedContext(new VirtualClock()));
  await until("a connection", () => sockets.length > 0);
  try {
    await inTime("it stops", source.stop());
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

test("websocketSource refuses what is no URL of a WebSocket, without showing it", () => {
  for (const url of ["http://a:secret@b", "no url"]) {
    assert.throws(
      () => websocketSource({ name: "chat", url, primaries: () => [] }),
      (error: unknown) =>
        error instanceof TypeError && !error.message.includes("secret") &&
        error.message.includes("must begin with ws:"),
    );
  }
});

test("websocketSource connects to a URL whose scheme has capitals", async () => {
  const server = await startServer();
  const source = websocketSource({
    name: "chat",
    url: server.url.replace("ws:", "WS:"),
    primaries: () => [],
  });
  await source.start(recordedContext(new VirtualClock()));
  try {
    await until("a connection", () => server.sockets[0]);
  } finally {
    await inTime("it stops", source.stop());
    await server.stop();
  }
});

test("websocketSource refuses headers that are none", () => {
  const options = { name: "chat", url: "wss://b", primaries: () => [] };
  assert.throws(
    () => websocketSource({ ...options, headers: 5 as never }),
    /"headers"/,
  );
});

test("websocketSource refuses a misspelt option of its TLS", () => {
  assert.throws(
    () =>
      websocketSource({
        name: "chat",
        url: "wss://b",
        primaries: () => [],
        tls: { servername: "b" } as never,
      }),
    /tls: there is no option "servername": did you mean "serverName"\?/,
  );
});

test("websocketSource connects with its certificates", async () => {
  const server = await startTlsServer();
  const messages: string[] = [];
  const source = websocketSource({
    name: "chat",
    url: `${server.url.replace("https", "wss")}/stream/echo`,
    protocols: ["v5.channel.k8s.io"],
    tls: { certificateAuthority: server.authority, ...server.clients.jane },
    primaries(message) {
      messages.push(new TextDecoder().decode(message));
      return [];
    },
  });
  await source.start(recordedContext(new VirtualClock()));
  await until("a message", () => messages.length > 0);
  assert.equal(JSON.parse(messages[0]!).user, "jane");
  await inTime("it stops", source.stop());
  await server.stop();
});

test("websocketSource has stopped when its onOpen has ended", async () => {
  const server = await startServer();
  const opened = Promise.withResolvers<void>();
  let isOpen = false;
  const source = websocketSource({
    name: "chat",
    url: server.url,
    primaries: () => [],
    async onOpen() {
      isOpen = true;
      await opened.promise;
    },
  });
  await source.start(recordedContext(new VirtualClock()));
  await until("a connection", () => isOpen);
  let hasStopped = false;
  const stopped = source.stop().then(() => hasStopped = true);
  await server.stop();
  assert.equal(hasStopped, false);
  opened.resolve();
  await inTime("it stops", stopped);
});
