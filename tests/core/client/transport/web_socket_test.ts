import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import type { TransportOptions } from "@coracle/operator/client";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { StreamRefusedError } from "../../../../core/client/transport/transport_error.ts";
import {
  type OpenStream,
  openWebSocket,
} from "../../../../core/client/transport/web_socket.ts";
import { VirtualClock } from "../../../../dev/testing/virtual_clock.ts";
import { inTime } from "../../../support/in_time.ts";
import { LeakGuard } from "../../../support/leaks.ts";
import { withSlowProxy } from "../../../support/slow_proxy.ts";
import { startTlsServer } from "../../../support/tls_server.ts";
import { until } from "../../../support/until.ts";

const server = await startTlsServer();
after(() => server.stop());

const SETTINGS: TransportOptions = {
  server: server.url,
  certificateAuthority: server.authority,
  ...server.clients.jane,
};

function open(
  path: string,
  parts: {
    readonly settings?: Partial<TransportOptions>;
    readonly headers?: Record<string, string>;
    readonly signal?: AbortSignal;
  } = {},
): Promise<OpenStream> {
  return openWebSocket(
    {
      path,
      headers: parts.headers ?? {},
      protocols: ["v5.channel.k8s.io"],
      signal: parts.signal,
    },
    { ...SETTINGS, ...parts.settings },
  );
}

async function texts(stream: OpenStream): Promise<string[]> {
  const messages: string[] = [];
  for await (const message of stream.messages) {
    messages.push(new TextDecoder().decode(message));
  }
  return messages;
}

async function firstText(stream: OpenStream): Promise<string> {
  for await (const message of stream.messages) {
    return new TextDecoder().decode(message);
  }
  return "";
}

test("openWebSocket sends certificate and headers, and messages both ways", async () => {
  const stream = await open("/stream/echo", {
    headers: { authorization: "Bearer secret" },
  });
  assert.equal(stream.protocol, "v5.channel.k8s.io");
  const messages = stream.messages[Symbol.asyncIterator]();
  const hello = await messages.next();
  assert.deepEqual(JSON.parse(new TextDecoder().decode(hello.value)), {
    user: "jane",
    authorization: "Bearer secret",
  });
  await stream.send(Uint8Array.of(1, 2, 3));
  assert.deepEqual([...(await messages.next()).value], [1, 2, 3]);
  await stream.close();
  await stream.close();
  assert.equal((await messages.next()).done, true);
});

test("openWebSocket delivers all messages before the peer closed", async () => {
  const stream = await open("/stream/three");
  assert.deepEqual(await texts(stream), ["one", "two", "three"]);
  await stream.ended;
});

test("openWebSocket reports a broken connection", async () => {
  const stream = await open("/stream/broken");
  await assert.rejects(() => texts(stream), /^Error: Cannot reach https/);
});

test("openWebSocket reports the response of a server that refuses", async () => {
  await assert.rejects(
    () => open("/stream/none"),
    (error: unknown) => {
      assert.ok(error instanceof StreamRefusedError);
      assert.equal(error.status, 404);
      assert.equal(JSON.parse(error.body).message, "no pod");
      return true;
    },
  );
});

test("openWebSocket applies back-pressure or fails while it is not read", async () => {
  const before = await server.counters();
  const stream = await open("/stream/flow");
  if (currentRuntime() === "deno") {
    await until(
      "the stream is given up",
      async () =>
        (await server.counters()).closedStreams > before.closedStreams,
    );
    return await assert.rejects(() => texts(stream), RangeError);
  }
  let last = -1;
  await until("the flow stops", async () => {
    const now = (await server.counters()).flowBytes - before.flowBytes;
    const stopped = now === last;
    last = now;
    return stopped;
  }, { every: 200 });
  assert.ok(last < 24 << 20, `${last} bytes were sent to nobody`);
  await stream.abort(new Error("enough"));
});

test("openWebSocket ends when its signal aborts, in every state", async () => {
  const reason = new Error("enough");
  await assert.rejects(
    () => open("/stream/silent", { signal: AbortSignal.abort(reason) }),
    reason,
  );
  const calling = new AbortController();
  const called = open("/stream/silent", { signal: calling.signal });
  calling.abort(reason);
  await assert.rejects(called, reason);
  const connecting = new AbortController();
  const stalled = open("/", {
    settings: { server: `https://127.0.0.1:${server.stalledPort}` },
    signal: connecting.signal,
  });
  setTimeout(() => connecting.abort(reason), 50);
  await assert.rejects(stalled, reason);
  const reading = new AbortController();
  const stream = await open("/stream/silent", { signal: reading.signal });
  setTimeout(() => reading.abort(reason), 50);
  await assert.rejects(() => texts(stream), reason);
});

test("openWebSocket ends the connection when its reader leaves", async () => {
  const before = (await server.counters()).closedStreams;
  // The server ends this one only when the client does.
  assert.match(await firstText(await open("/stream/echo")), /"user":"jane"/);
  await until(
    "the server sees the end",
    async () => (await server.counters()).closedStreams > before,
  );
});

test("openWebSocket verifies the server's certificate and name", async () => {
  await assert.rejects(
    () => open("/stream/echo", { settings: { serverName: "other.internal" } }),
    /Cannot reach/,
  );
  await assert.rejects(
    () => open("/stream/echo", { settings: { certificateAuthority: "" } }),
    /Cannot reach/,
  );
  for (
    const settings of [{ serverName: "api.internal" }, {
      certificateAuthority: "",
      insecureSkipTlsVerify: true,
    }]
  ) {
    const stream = await open("/stream/echo", { settings });
    assert.match(await firstText(stream), /"jane"/);
  }
});

test("openWebSocket connects through a proxy", async () => {
  const before = (await server.counters()).tunnels;
  const guarded = `127.0.0.1:${server.guardedProxyPort}`;
  for (
    const settings of [
      { proxyUrl: `http://127.0.0.1:${server.proxyPort}` },
      // Bun's ws does not support SOCKS.
      ...(currentRuntime() === "bun"
        ? []
        : [{ proxyUrl: `socks5://127.0.0.1:${server.socksPort}` }]),
      { proxyUrl: `http://jane:p%40ss@${guarded}`, serverName: "api.internal" },
    ]
  ) {
    const stream = await open("/stream/echo", { settings });
    assert.match(await firstText(stream), /"jane"/);
  }
  const tunnels = (await server.counters()).tunnels - before;
  assert.equal(tunnels, currentRuntime() === "bun" ? 2 : 3);
  await assert.rejects(
    () => open("/", { settings: { proxyUrl: `http://jane:wrong@${guarded}` } }),
    (error: Error) => !error.message.includes("wrong"),
  );
});

/** Opens a stream whose heartbeats the test makes. */
async function openBeating(
  path: string,
): Promise<{
  readonly stream: OpenStream;
  readonly beat: () => void;
  /** Timer of the heartbeats. */
  readonly timer: () => unknown;
}> {
  const { setInterval } = globalThis;
  const beats: (() => void)[] = [];
  let timer: unknown;
  globalThis.setInterval = ((beat: () => void, ...rest: number[]) => {
    beats.push(beat);
    return timer = setInterval(beat, ...rest);
  }) as typeof setInterval;
  const stream = await open(path).finally(() =>
    globalThis.setInterval = setInterval
  );
  const beat = () => beats.forEach((one) => one());
  return { stream, beat, timer: () => timer };
}

/** Opens a stream that flows until it is paused, since nobody reads it. */
async function openPaused(): Promise<{
  readonly stream: OpenStream;
  readonly beat: () => void;
  /** Number of bytes that were sent. */
  readonly sent: number;
}> {
  const before = (await server.counters()).flowBytes;
  const { stream, beat } = await openBeating("/stream/flow");
  let last = -1;
  await until("the flow stops", async () => {
    const now = (await server.counters()).flowBytes - before;
    const stopped = now === last;
    last = now;
    return stopped;
  }, { every: 200 });
  return { stream, beat, sent: last };
}

const UNPAUSED = currentRuntime() !== "node" && "other runtimes do not pause";

test("openWebSocket keeps a paused stream, whose pongs are not read", {
  skip: UNPAUSED,
}, async () => {
  const { stream, beat, sent } = await openPaused();
  for (let i = 0; i < 4; i++) beat();
  const messages = stream.messages[Symbol.asyncIterator]();
  // More than was sent before: the stream goes on.
  for (let read = 0; read <= sent + 1_000_000;) {
    const { done, value } = await messages.next();
    assert.ok(!done && value.byteLength > 0);
    read += value.byteLength;
  }
  await stream.abort(new Error("enough"));
});

test("openWebSocket closes a paused stream without a wait", {
  skip: UNPAUSED,
}, async () => {
  const { stream } = await openPaused();
  const start = performance.now();
  await stream.close();
  // An unread answer to the close is waited for for 30 s.
  assert.ok(performance.now() - start < 20_000);
});

test("openWebSocket keeps a quiet stream whose peer answers pings", async () => {
  const { ping } = WebSocket.prototype;
  let socket: WebSocket | undefined;
  WebSocket.prototype.ping = function (...rest) {
    socket = this;
    ping.apply(this, rest);
  };
  try {
    const { stream, beat } = await openBeating("/stream/echo");
    await stream.messages[Symbol.asyncIterator]().next();
    for (let i = 0; i < 3; i++) {
      beat();
      await Promise.race([once(socket!, "pong"), stream.ended]);
    }
    assert.equal(socket?.readyState, WebSocket.OPEN);
    await stream.close();
  } finally {
    WebSocket.prototype.ping = ping;
  }
});

test("openWebSocket ends a stream whose peer does not answer pings", async () => {
  const { stream, beat } = await openBeating("/stream/echo");
  const messages = stream.messages[Symbol.asyncIterator]();
  await messages.next();
  for (let i = 0; i < 3; i++) {
    beat();
    // Its response follows the one to the ping.
    await stream.send(Uint8Array.of(i));
    assert.deepEqual([...(await messages.next()).value], [i]);
  }
  beat();
  beat();
  await assert.rejects(
    () => messages.next(),
    /^Error: Cannot read a WebSocket: the peer did not respond within 30000 ms$/,
  );
});

test("openWebSocket ends its heartbeats with the connection, however that ends", async () => {
  const { clearInterval } = globalThis;
  const cleared: unknown[] = [];
  globalThis.clearInterval = ((timer: Parameters<typeof clearInterval>[0]) => {
    cleared.push(timer);
    clearInterval(timer);
  }) as typeof clearInterval;
  const timers: unknown[] = [];
  try {
    for (
      const end of [
        (stream: OpenStream) => stream.close(),
        (stream: OpenStream) => stream.abort(new Error("enough")),
        async (stream: OpenStream) => void await texts(stream),
      ]
    ) {
      const { stream, timer } = await openBeating("/stream/three");
      timers.push(timer());
      await end(stream);
      await stream.ended;
    }
    assert.deepEqual(timers.filter((timer) => !cleared.includes(timer)), []);
  } finally {
    globalThis.clearInterval = clearInterval;
    for (const timer of timers) clearInterval(timer as never);
  }
});

test("openWebSocket leaves no listener on the signal of an ended stream", async () => {
  const guard = new LeakGuard();
  const { signal } = new AbortController();
  await assert.rejects(() => open("/stream/none", { signal }));
  const stream = await open("/stream/three", { signal });
  await stream.close();
  guard.check(new VirtualClock());
});

/** A server without TLS in this process, which handles upgrades by itself. */
async function withPlainServer(
  upgrade: (socket: Duplex, request: IncomingMessage) => void,
  run: (url: string, open: ReadonlySet<unknown>) => Promise<void>,
): Promise<void> {
  const server = createServer();
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
  });
  server.on("upgrade", (request, socket) => upgrade(socket, request));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await run(`http://127.0.0.1:${port}`, open);
  } finally {
    for (const socket of open) socket.destroy();
    server.close();
  }
}

const PLAIN = { path: "/exec", headers: {}, protocols: [] };

test("openWebSocket reads a part of a refusal that does not end, and closes it", () =>
  withPlainServer((socket) => {
    socket.write("HTTP/1.1 403 Forbidden\r\n\r\n");
    const write = () => {
      while (!socket.destroyed && socket.write("x".repeat(10_000)));
    };
    socket.on("drain", write);
    write();
  }, async (server, open) => {
    const refused = assert.rejects(
      openWebSocket(PLAIN, { server }),
      (error) => {
        assert.ok(error instanceof StreamRefusedError);
        assert.equal(error.status, 403);
        assert.ok(error.body.length < 1 << 20, `${error.body.length}`);
        return true;
      },
    );
    await inTime("the refusal", refused);
    await until("it is closed", () => open.size === 0);
  }));

test("openWebSocket reads a refusal that drips for its time limit, and closes it", () =>
  withPlainServer((socket) => {
    socket.write("HTTP/1.1 403 Forbidden\r\n\r\nno");
    const drip = setInterval(() => socket.write("."), 20);
    socket.on("close", () => clearInterval(drip));
  }, async (server, open) => {
    const refused = assert.rejects(
      openWebSocket(PLAIN, { server, connectTimeout: 300 }),
      (error) => {
        assert.ok(error instanceof StreamRefusedError);
        assert.equal(error.status, 403);
        assert.match(error.body, /^no/);
        return true;
      },
    );
    await inTime("the refusal", refused);
    await until("it is closed", () => open.size === 0);
  }));

test("openWebSocket gives up a server that does not answer at its time limit", () =>
  withPlainServer((socket) => {
    socket.resume().on("end", () => socket.end());
  }, async (server, open) => {
    const opened = openWebSocket(PLAIN, { server, connectTimeout: 100 });
    await inTime("its end", assert.rejects(opened));
    await until("it is closed", () => open.size === 0);
  }));

test("openWebSocket gives up a proxy at its time limit and at an abort", () =>
  withSlowProxy(async (proxy, proxyUrl) => {
    // Bun connects through proxies by itself.
    if (currentRuntime() === "bun") return;
    const server = "http://server.invalid";
    const late = openWebSocket(PLAIN, { server, proxyUrl, connectTimeout: 50 });
    await inTime("the limit", assert.rejects(late, /within 50 ms/));
    const reason = new Error("enough");
    const controller = new AbortController();
    const { signal } = controller;
    const options = { server, proxyUrl };
    const opened = openWebSocket({ ...PLAIN, signal }, options);
    await proxy.waiting();
    controller.abort(reason);
    await inTime("the abort", assert.rejects(opened, reason));
  }));

test("openWebSocket sends headers of several lines, which Bun refuses", () => {
  const received: string[] = [];
  return withPlainServer((socket, request) => {
    received.push(...request.rawHeaders);
    accept(socket, request);
  }, async (server) => {
    const groups = ["staff", "admins"];
    const opened = openWebSocket({
      ...PLAIN,
      headers: { "impersonate-user": "jane" },
      repeatedHeaders: { "impersonate-group": groups },
    }, { server });
    if (currentRuntime() === "bun") {
      await assert.rejects(opened, /received impersonate-group$/);
      return assert.deepEqual(received, []);
    }
    const stream = await opened;
    const values = (name: string) =>
      received.filter((_, at) => received[at - 1]?.toLowerCase() === name);
    assert.deepEqual(values("impersonate-user"), ["jane"]);
    assert.deepEqual(values("impersonate-group"), groups);
    await stream.abort(new Error("enough"));
  });
});

test("openWebSocket sends each character of a header as one byte", () => {
  const received: string[] = [];
  return withPlainServer((socket, request) => {
    received.push(request.headers["impersonate-user"] as string);
    accept(socket, request);
  }, async (server) => {
    const user = Buffer.from("jürgen 日本").toString("latin1");
    const headers = { "impersonate-user": user };
    const stream = await openWebSocket({ ...PLAIN, headers }, { server });
    assert.deepEqual(received, [user]);
    await stream.abort(new Error("enough"));
  });
});

test("openWebSocket does not send on a stream that has ended", async () => {
  const stream = await open("/stream/echo");
  await stream.abort(new Error("enough"));
  await inTime(
    "the send",
    assert.rejects(stream.send(Uint8Array.of(1)), /enough/),
  );
});

/** Opens a WebSocket from the side of the server, and sends nothing more. */
function accept(socket: Duplex, { headers }: IncomingMessage): void {
  const key = headers["sec-websocket-key"];
  const proof = createHash("sha1")
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ${proof}\r\n\r\n`,
  );
  socket.resume();
}

test("openWebSocket ends its messages at a close that the peer does not answer", () =>
  withPlainServer(accept, async (server) => {
    const stream = await openWebSocket(PLAIN, { server });
    let isClosed = false;
    const closed = stream.close().then(() => isClosed = true);
    assert.deepEqual(await inTime("the end", texts(stream)), []);
    assert.equal(isClosed, false);
    await stream.abort(new Error("enough"));
    await inTime("the close", closed);
  }));

test("openWebSocket ends in order by the normal codes of a close only", async () => {
  for (const code of [1000, 1001, 1008, 1011, undefined]) {
    await withPlainServer((socket, request) => {
      accept(socket, request);
      const body = code === undefined ? [] : [code >> 8, code & 255];
      socket.end(Buffer.from([0x82, 1, 65, 0x88, body.length, ...body]));
    }, async (server) => {
      const { messages } = await openWebSocket(PLAIN, { server });
      const reader = messages[Symbol.asyncIterator]();
      assert.deepEqual([...(await reader.next()).value ?? []], [65]);
      const end = inTime("the end", reader.next());
      if (code === undefined || code === 1000) {
        assert.equal((await end).done, true, `${code}`);
      } else {
        await assert.rejects(end, {
          message:
            `Cannot reach ${server}: the connection failed: received a close with code ${code}`,
        });
      }
    });
  }
});

test("openWebSocket fails at a message of more than 16 MiB, before it arrives", () =>
  withPlainServer((socket, request) => {
    accept(socket, request);
    const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeUInt32BE((16 << 20) + 1, 6);
    socket.write(head);
    // The client closes the WebSocket.
    socket.once("data", () => socket.end());
  }, async (server, open) => {
    const stream = await openWebSocket(PLAIN, { server });
    await inTime("the failure", assert.rejects(texts(stream)));
    await until("it is closed", () => open.size === 0);
  }));

test("openWebSocket sends a repeated header of a single line on every runtime", () => {
  const received: string[] = [];
  return withPlainServer((socket, request) => {
    received.push(...request.rawHeaders);
    accept(socket, request);
  }, async (server) => {
    const stream = await openWebSocket({
      ...PLAIN,
      headers: {},
      repeatedHeaders: { "impersonate-group": ["staff"] },
    }, { server });
    const at = received.findIndex((name) => /^impersonate-group$/i.test(name));
    assert.equal(received[at + 1], "staff");
    await stream.abort(new Error("enough"));
  });
});
