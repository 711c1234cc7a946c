import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { EventEmitter, once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { PooledConnection } from "../../../../core/client/transport/pooled_connection.ts";
import {
  ResponseStream,
  type ResponseStreamDeps,
} from "../../../../core/client/transport/response_stream.ts";
import { openHttpTransport } from "../../../../core/client/transport/transport_node.ts";
import {
  type HttpRequest,
  type HttpResponse,
  OpenRequests,
} from "../../../../core/client/transport/transport.ts";
import { inTime } from "../../../support/in_time.ts";
import { text } from "../../../support/transport_case.ts";

const READ: HttpRequest = { method: "GET", path: "/x", headers: {} };
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n";

/** Bodies of requests in a row, and on how many connections they were served. */
async function serve(
  answers: readonly string[],
  request: HttpRequest = READ,
): Promise<{ bodies: string[]; connections: number; requests: string[] }> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let next = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (data) => {
      requests.push(data.toString("utf8"));
      socket.write(answers[next++] ?? "");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const transport = openHttpTransport({ server: `http://127.0.0.1:${port}` });
  const bodies: string[] = [];
  try {
    for (const _ of answers) {
      const response = await transport.send(request);
      let text = "";
      for await (const chunk of response.body) {
        text += new TextDecoder().decode(chunk);
      }
      bodies.push(text);
    }
  } finally {
    await transport.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
  return { bodies, connections: sockets.size, requests };
}

test("PooledConnection serves requests one after the other", async () => {
  const answers = ["ab", "cd", "ef"].map((body) => `${OK}\r\n${body}`);
  const { bodies, connections } = await serve(answers);
  assert.deepEqual(bodies, ["ab", "cd", "ef"]);
  assert.equal(connections, 1);
});

test("PooledConnection is not used again if the server closes it", async () => {
  for (
    const header of ["connection: close\r\n", "keep-alive: timeout=1\r\n"]
  ) {
    const { connections } = await serve([
      `${OK}${header}\r\nab`,
      `${OK}\r\ncd`,
    ]);
    assert.equal(connections, 2, header);
  }
});

test("PooledConnection is closed by bytes that belong to no response", async () => {
  const smuggled = `${OK}\r\nXX`;
  const { bodies, connections } = await serve([
    `${OK}\r\nab${smuggled}`,
    `${OK}\r\ncd`,
  ]);
  assert.deepEqual(bodies, ["ab", "cd"]);
  assert.equal(connections, 2);
});

/** Socket without a peer: the test emits what arrives. */
class SilentSocket extends EventEmitter {
  writable = true;
  writableLength = 0;
  /** Whether it keeps the process alive. */
  isReferenced = true;
  isDestroyed = false;
  writes = 0;
  #isPaused = false;
  isPaused(): boolean {
    return this.#isPaused;
  }
  pause(): void {
    this.#isPaused = true;
  }
  resume(): void {
    this.#isPaused = false;
  }
  ref(): void {
    this.isReferenced = true;
  }
  unref(): void {
    this.isReferenced = false;
  }
  write(): void {
    this.writes++;
  }
  destroy(): void {
    this.isDestroyed = true;
  }
}

/** Pooled connection over a silent socket, with the responses that it gets. */
function silentConnection() {
  const idle: PooledConnection[] = [];
  const closed: PooledConnection[] = [];
  const failures: unknown[] = [];
  const connection = new PooledConnection({
    idle: (one) => void idle.push(one),
    closed: (one) => void closed.push(one),
  });
  const socket = new SilentSocket();
  connection.open(socket as unknown as Socket);
  const send = (parts: Partial<ResponseStreamDeps> = {}) => {
    const stream = new ResponseStream({
      origin: "http://127.0.0.1:1",
      signal: undefined,
      requests: new OpenRequests(),
      resolve() {},
      reject: (error) => void failures.push(error),
      ...parts,
    });
    connection.send(stream, new Uint8Array());
    return stream;
  };
  const receive = (text: string) => socket.emit("data", Buffer.from(text));
  return { connection, idle, closed, failures, send, receive, socket };
}

type SilentConnection = ReturnType<typeof silentConnection>;

/** Responses after which a connection is not used again. */
const LAST: readonly (readonly [
  string,
  (parts: SilentConnection) => void,
])[] = [
  ["it refuses the request before it was written", (parts) => {
    const { send, socket, receive } = parts;
    send();
    socket.writableLength = 1;
    receive("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nab");
  }],
  ["its caller leaves it", ({ send, receive }) => {
    const stream: ResponseStream = send({
      resolve: () => stream.abort(new Error("enough")),
    });
    receive(`${OK}\r\nab`);
  }],
  ["more bytes follow", ({ send, receive }) => {
    send();
    receive(`${OK}\r\nabc`);
  }],
  ["more bytes follow later", ({ send, receive, idle }) => {
    send();
    receive(`${OK}\r\nab`);
    idle.pop();
    receive("c");
  }],
  ["the peer closes it later", ({ send, receive, idle, socket }) => {
    send();
    receive(`${OK}\r\nab`);
    idle.pop();
    socket.emit("close");
  }],
  ["its length is its end", ({ send, receive, socket }) => {
    send();
    receive("HTTP/1.1 200 OK\r\n\r\nab");
    socket.emit("end");
  }],
  ["it is too short", ({ send, receive, socket, failures }) => {
    send();
    receive(`${OK}\r\na`);
    socket.emit("close");
    failures.pop();
  }],
  ["its socket fails", ({ send, socket, failures }) => {
    send();
    socket.emit("error", new Error("broken"));
    assert.match(String(failures.pop()), /broken/);
  }],
  ["its socket closes without a word", ({ send, socket, failures }) => {
    send();
    socket.emit("close");
    assert.match(String(failures.pop()), /ended within the head/);
  }],
  ["the check of its request throws", ({ send, failures }) => {
    send({
      beforeSend: () => {
        throw new Error("no longer");
      },
    });
    assert.match(String(failures.pop()), /no longer/);
  }],
];

for (const [why, play] of LAST) {
  test(`PooledConnection is closed after a response if ${why}`, () => {
    const parts = silentConnection();
    play(parts);
    const { connection, idle, closed, failures, socket } = parts;
    assert.deepEqual(idle, []);
    assert.ok(socket.isDestroyed);
    assert.ok(closed.includes(connection), "the pool is told");
    assert.deepEqual(
      failures.filter((error) => !/enough/.test(`${error}`)),
      [],
    );
    if (why.startsWith("the check")) assert.equal(socket.writes, 0);
  });
}

test("PooledConnection is used again if Node reports its write after the response", () => {
  const { connection, idle, send, receive, socket } = silentConnection();
  send();
  socket.writableLength = 1;
  receive(`${OK}\r\nab`);
  assert.deepEqual(idle, [connection]);
  assert.ok(connection.isUsable);
});

test("PooledConnection is used again after an error response", () => {
  const { connection, idle, send, receive } = silentConnection();
  send();
  receive("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nab");
  assert.deepEqual(idle, [connection]);
  assert.ok(connection.isUsable);
});

test("PooledConnection gives the head that arrives with a broken body", async () => {
  const { send, receive, failures, socket } = silentConnection();
  const begun: HttpResponse[] = [];
  send({ resolve: (response) => void begun.push(response) });
  receive("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size");
  assert.equal(begun[0]?.status, 200);
  assert.ok(socket.isDestroyed);
  assert.deepEqual(failures.splice(0, 1).length, 1);
  await assert.rejects(async () => {
    for await (const _chunk of begun[0]?.body ?? []);
  }, /a chunk must begin with a line of its size/);
});

test("PooledConnection keeps a body that nobody has read beside the next one", async () => {
  const connection = new PooledConnection({ idle() {}, closed() {} });
  const memory = connection.buffer();
  connection.open(new SilentSocket() as unknown as Socket);
  const responses: HttpResponse[] = [];
  for (const sent of ["ab", "cd"]) {
    connection.send(
      new ResponseStream({
        origin: "http://127.0.0.1:1",
        signal: undefined,
        requests: new OpenRequests(),
        resolve: (response) => void responses.push(response),
        reject: (error) => assert.fail(`${error}`),
      }),
      new Uint8Array(),
    );
    memory.set(Buffer.from(`${OK}\r\n${sent}`));
    assert.equal(connection.callback(OK.length + 4), true);
  }
  assert.deepEqual(await Promise.all(responses.map(text)), ["ab", "cd"]);
});

test("PooledConnection is usable for as long as the server keeps it", () => {
  const { now } = performance;
  const start = now.call(performance);
  // Nobody uses one for longer than a minute.
  const limits = { "": 60_000, "timeout=5": 4_000, "timeout=3600": 60_000 };
  try {
    for (const [keepAlive, limit] of Object.entries(limits)) {
      performance.now = () => start;
      const { connection, send, receive, socket } = silentConnection();
      assert.ok(connection.isUsable);
      send();
      receive(`${OK}${keepAlive && `keep-alive: ${keepAlive}\r\n`}\r\nab`);
      performance.now = () => start + limit - 1;
      assert.ok(connection.isUsable, keepAlive);
      performance.now = () => start + limit;
      assert.ok(!connection.isUsable, keepAlive);
      performance.now = () => start;
      socket.writable = false;
      assert.ok(!connection.isUsable, "the peer has ended it");
    }
  } finally {
    performance.now = now;
  }
});

test("PooledConnection reads on after a response that ended while it was paused", () => {
  const { connection, idle, send, socket } = silentConnection();
  send();
  // Nobody reads the body, whose last byte is one too many.
  const body = new Uint8Array((256 << 10) + 1);
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`;
  socket.emit("data", Buffer.from(head));
  socket.emit("data", body);
  assert.deepEqual(idle, [connection]);
  assert.equal(socket.isPaused(), false, "the next response can arrive");
});

test("PooledConnection keeps the process alive while it serves a request", () => {
  const { connection, send, socket } = silentConnection();
  for (const round of ["first", "second"]) {
    send();
    connection.unref();
    assert.equal(socket.isReferenced, true, `the ${round} request`);
    socket.emit("data", Buffer.from(`${OK}\r\nab`));
    connection.unref();
    assert.equal(socket.isReferenced, false, `after the ${round} request`);
  }
});

test("Transport over sockets leaves no timer of an open or failed connection", async () => {
  const LIMIT_MS = 54_321;
  const { clearTimeout, setTimeout } = globalThis;
  const timers = new Set<unknown>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(`${OK}\r\nab`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const transport = openHttpTransport({
    server: `http://127.0.0.1:${port}`,
    connectTimeout: LIMIT_MS,
  });
  const refusing = openHttpTransport({
    server: "http://127.0.0.1:1",
    connectTimeout: LIMIT_MS,
  });
  globalThis.setTimeout = ((callback: () => void, delay: number) => {
    const timer = setTimeout(callback, delay);
    if (delay === LIMIT_MS) timers.add(timer);
    return timer;
  }) as typeof setTimeout;
  globalThis.clearTimeout = ((timer: Parameters<typeof clearTimeout>[0]) => {
    timers.delete(timer);
    clearTimeout(timer);
  }) as typeof clearTimeout;
  try {
    const sent = transport.send(READ);
    assert.equal(timers.size, 1, "while it connects");
    await sent;
    assert.equal(timers.size, 0);
    const abort = new AbortController();
    const given = [
      transport.send({ ...READ, signal: abort.signal }),
      transport.send({ ...READ, signal: abort.signal }),
      refusing.send(READ),
    ];
    abort.abort();
    await Promise.allSettled(given);
    assert.equal(timers.size, 0, "aborted or refused");
  } finally {
    Object.assign(globalThis, { clearTimeout, setTimeout });
    for (const timer of timers) clearTimeout(timer as never);
    await Promise.all([transport.close(), refusing.close()]);
    server.close();
  }
});

test("Transport over sockets closes a tunnel that opens after its request was given up", async () => {
  const asked = Promise.withResolvers<Socket>();
  const proxy = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => asked.resolve(socket));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const transport = openHttpTransport({
    server: "http://127.0.0.1:1",
    proxyUrl: `http://127.0.0.1:${port}`,
  });
  const abort = new AbortController();
  const refused = assert.rejects(
    transport.send({ ...READ, signal: abort.signal }),
    /enough/,
  );
  const tunnel = await inTime("the proxy is asked", asked.promise);
  try {
    abort.abort(new Error("enough"));
    await refused;
    tunnel.resume().write("HTTP/1.1 200 OK\r\n\r\n");
    await inTime("the tunnel is closed", once(tunnel, "close"), 10_000);
  } finally {
    tunnel.destroy();
    await transport.close();
    proxy.close();
  }
});

test("PooledConnection sends a body with its length in bytes", async () => {
  const { requests } = await serve([`${OK}\r\nab`], {
    method: "PATCH",
    path: "/x",
    headers: { "content-type": "application/json" },
    body: '{"a":"ä€"}',
  });
  assert.match(
    requests.join(""),
    /\r\ncontent-length: 13\r\n\r\n\{"a":"ä€"\}$/,
  );
});

test("Transport over sockets refuses headers that frame a request", async () => {
  const transport = openHttpTransport({ server: "http://127.0.0.1:1" });
  for (const name of ["transfer-encoding", "Content-Length", "connection"]) {
    await assert.rejects(
      () => transport.send({ ...READ, headers: { [name]: "5" } }),
      new RegExp(`the transport sets this header: received "${name}"`),
    );
  }
  await transport.close();
});

test("Transport over sockets rejects a request if its certificates are broken", async () => {
  const proxy = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const broken = { certificate: "no certificate", key: "no key" };
  for (const proxyUrl of [undefined, `http://127.0.0.1:${port}`]) {
    const transport = openHttpTransport({
      server: "https://127.0.0.1:1",
      // Deno reports broken certificates by this limit only.
      connectTimeout: 200,
      ...broken,
      ...(proxyUrl && { proxyUrl }),
    });
    await assert.rejects(
      () => transport.send(READ),
      /^Error: Cannot reach https:\/\/127\.0\.0\.1:1: the connection failed/,
    );
    await transport.close();
  }
  proxy.close();
});
