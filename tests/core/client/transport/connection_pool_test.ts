/**
 * Connections of the transport over sockets: which one a request uses, when idle
 * ones are closed, and that nothing of an ended request is left.
 *
 * @module
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, Socket } from "node:net";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import type { HttpRequest } from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../../../core/admission/certificates.ts";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { openHttpTransport } from "../../../../core/client/transport/open_transport.ts";
import type { HttpTransport } from "../../../../core/client/transport/transport.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { inTime } from "../../../support/in_time.ts";
import { get, testEachRequest, text } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Peer of a transport, which answers when the test says so. */
class Peer {
  /** Sockets that are open, in the order of their connections. */
  readonly open: Socket[] = [];
  /** Number of the connection of each request. */
  readonly requests: number[] = [];
  /** Path of each request. */
  readonly paths: string[] = [];
  #connections = 0;
  /** Whether requests get no response. */
  isSilent: boolean;

  constructor(isSilent: boolean) {
    this.isSilent = isSilent;
  }

  readonly accept = (socket: Socket): void => {
    const number = this.#connections++;
    this.open.push(socket);
    socket.on("error", () => {});
    socket.on(
      "close",
      () => this.open.splice(this.open.indexOf(socket), 1),
    );
    socket.on("data", (data) => {
      this.requests.push(number);
      this.paths.push(data.toString("latin1").split(" ")[1] ?? "");
      if (!this.isSilent) socket.write(OK);
    });
  };
}

/** Runs a test with a transport and its peer, and ends both. */
async function withPeer(
  run: (transport: HttpTransport, peer: Peer) => Promise<void>,
  { isSilent = false, scheme = "http" } = {},
): Promise<void> {
  const peer = new Peer(isSilent);
  const server = createServer(peer.accept);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const transport = await openHttpTransport({
    server: `${scheme}://127.0.0.1:${port}`,
  });
  try {
    await run(transport, peer);
  } finally {
    await transport.close();
    for (const socket of [...peer.open]) socket.destroy();
    server.close();
  }
}

/** Sends requests at once and reads their responses; each has its connection. */
async function readAtOnce(
  transport: HttpTransport,
  count: number,
): Promise<void> {
  const sent = Array.from({ length: count }, () => transport.send(get("/x")));
  for (const response of await Promise.all(sent)) await text(response);
}

test("Transport uses the connection that was used last", () =>
  withPeer(async (transport, peer) => {
    await readAtOnce(transport, 3);
    for (let i = 0; i < 4; i++) await readAtOnce(transport, 1);
    assert.equal(peer.open.length, 3);
    assert.equal(new Set(peer.requests.slice(3)).size, 1);
  }));

test("Transport keeps an idle connection when another one breaks", () =>
  withPeer(async (transport, peer) => {
    await readAtOnce(transport, 2);
    const controller = new AbortController();
    const { signal } = controller;
    peer.isSilent = true;
    const ended = assert.rejects(transport.send(get("/x", { signal })));
    await until("it was sent", () => peer.requests.length === 3);
    controller.abort();
    await ended;
    await until("it is closed", () => peer.open.length === 1);
    peer.isSilent = false;
    await readAtOnce(transport, 1);
    assert.equal(new Set(peer.requests).size, 2, "no third connection");
  }));

test("Transport opens 16 connections for short requests, and no more", () =>
  withPeer(async (transport, peer) => {
    const sent = Array.from(
      { length: 40 },
      (_, i) => transport.send(get(`/${i}`)).then(text),
    );
    await until("all are used", () => peer.requests.length === 16);
    await nextTurn();
    assert.equal(peer.open.length, 16);
    // Streams have connections of their own.
    const stream = transport.send(get("/stream", { mayPause: true }));
    await until("a stream is sent", () => peer.requests.length === 17);
    assert.equal(peer.open.length, 17);
    peer.isSilent = false;
    for (const socket of peer.open) socket.write(OK);
    await inTime("all end", Promise.all([...sent, stream]));
    assert.deepEqual(
      peer.paths.filter((path) => path !== "/stream"),
      [
        ...Array(40).keys(),
      ].map((i) => `/${i}`),
    );
    assert.ok(peer.open.length <= 17, `${peer.open.length} connections`);
  }, { isSilent: true }));

test("Transport leaves no request behind that waits for a connection", () =>
  withPeer(async (transport, peer) => {
    const aborts = Array.from({ length: 20 }, () => new AbortController());
    const reason = new Error("enough");
    const ended = aborts.map(({ signal }) =>
      assert.rejects(transport.send(get("/x", { signal })), reason)
    );
    await until("16 are sent", () => peer.requests.length === 16);
    // The last ones wait; one of the first makes room for the last but one.
    aborts.at(-1)?.abort(reason);
    await ended.at(-1);
    aborts[0]?.abort(reason);
    await until("another one is sent", () => peer.requests.length === 17);
    for (const abort of aborts) abort.abort(reason);
    await inTime("all end", Promise.all(ended));
    await until("all are closed", () => peer.open.length === 0);
    assert.equal(peer.requests.length, 17);
    await inTime("nothing is left", transport.retire());
  }, { isSilent: true }));

test("Transport sends a waiting request after others could not connect", async () => {
  const transport = await openHttpTransport({ server: "http://127.0.0.1:1" });
  const sent = Array.from(
    { length: 40 },
    () => assert.rejects(transport.send(get("/x")), /Cannot reach/),
  );
  await inTime("all fail", Promise.all(sent));
  await inTime("nothing is left", transport.retire());
});

test("Transport gives a stream the idle connection of a short request", () =>
  withPeer(async (transport, peer) => {
    await readAtOnce(transport, 1);
    await text(await transport.send(get("/x", { mayPause: true })));
    await readAtOnce(transport, 1);
    assert.deepEqual(peer.requests, [0, 0, 0]);
  }));

test("Transport keeps 16 of the connections that streams have ended", () =>
  withPeer(async (transport, peer) => {
    const sent = Array.from(
      { length: 30 },
      () => transport.send(get("/x", { mayPause: true })),
    );
    await until("all have arrived", () => peer.requests.length === 30);
    for (const socket of [...peer.open]) socket.write(OK);
    for (const response of await Promise.all(sent)) await text(response);
    await until("others are closed", () => peer.open.length === 16);
  }, { isSilent: true }));

test("Transport that retires waits for no request that was refused", () =>
  withPeer(async (transport) => {
    const headers = { "bad name": "x" };
    await assert.rejects(transport.send(get("/x", { headers })), /is invalid/);
    await inTime("its end", transport.retire());
  }));

test("Transport keeps no process alive by an idle connection", () =>
  withPeer(async (transport) => {
    const { ref, unref } = Socket.prototype;
    const free = new Set<Socket>();
    Socket.prototype.unref = function (this: Socket) {
      free.add(this);
      return unref.call(this);
    };
    Socket.prototype.ref = function (this: Socket) {
      free.delete(this);
      return ref.call(this);
    };
    try {
      for (const round of ["first", "second"]) {
        await readAtOnce(transport, 2);
        await nextTurn();
        await until(`both are free, ${round}`, () => free.size === 2);
      }
    } finally {
      Object.assign(Socket.prototype, { ref, unref });
    }
  }));

testEachRequest(
  "Transport gives up a connection with the request that waits for it",
  async (get) => {
    // The peer never answers to the TLS handshake.
    await withPeer(async (transport, peer) => {
      const abort = new AbortController();
      const sent = transport.send(get("/x", { signal: abort.signal }));
      const refused = assert.rejects(sent, /enough/);
      await until("the handshake began", () => peer.requests.length === 1);
      abort.abort(new Error("enough"));
      await refused;
      // Sooner than by the time limit for connecting, of 10 s.
      await until("it is closed", () => peer.open.length === 0);
    }, { isSilent: true, scheme: "https" });
  },
);

test("Transport resumes its TLS session", async () => {
  const authority = createAuthority({ commonName: "test" });
  const { certificate, key } = issueCertificate(authority, {
    commonName: "server",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  const protocols: (string | false | null)[] = [];
  const resumed: boolean[] = [];
  const server = createTlsServer({
    cert: certificate,
    key,
    ALPNProtocols: ["h2", "http/1.1"],
  }, (socket) => {
    protocols.push(socket.alpnProtocol);
    resumed.push(socket.isSessionReused());
    socket.on("error", () => {});
    socket.on(
      "data",
      () => socket.end(OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const transport = await openHttpTransport({
    server: `https://127.0.0.1:${port}`,
    certificateAuthority: authority.certificate,
  });
  for (let i = 0; i < 3; i++) await readAtOnce(transport, 1);
  await transport.close();
  server.close();
  assert.deepEqual(protocols, Array(3).fill("http/1.1"));
  // The other runtimes begin a new session each time.
  if (currentRuntime() === "node") {
    assert.deepEqual(resumed, [false, true, true]);
  }
});

test("Transport sends small requests without a delay", () =>
  withPeer(async (transport) => {
    const { setNoDelay } = Socket.prototype;
    let calls = 0;
    Socket.prototype.setNoDelay = function (this: Socket, on) {
      if (on === true) calls++;
      return setNoDelay.call(this, on);
    };
    try {
      await readAtOnce(transport, 2);
      assert.equal(calls, 2);
    } finally {
      Socket.prototype.setNoDelay = setNoDelay;
    }
  }));

test("Transport gives up a silent proxy at its own time limit", async () => {
  const proxy = new Peer(true);
  const listener = createServer(proxy.accept);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  for (const scheme of ["http", "socks5"]) {
    const transport = await openHttpTransport({
      server: "https://127.0.0.1:1",
      proxyUrl: `${scheme}://127.0.0.1:${port}`,
      connectTimeout: 100,
    });
    const sent = transport.send(get("/x"));
    await inTime("it fails", assert.rejects(sent, /within 100 ms/));
    await until("its socket is closed", () => proxy.open.length === 0);
    await transport.close();
  }
  listener.close();
});

testEachRequest(
  "Transport that retires serves all requests in progress first",
  (get) =>
    withPeer(async (transport, peer) => {
      const sent = [0, 1, 2].map(() => transport.send(get("/x")));
      await until("all have arrived", () => peer.requests.length === 3);
      let isRetired = false;
      const retired = transport.retire().then(() => isRetired = true);
      const ended = Promise.all(
        sent.map(async (one) => assert.equal(await text(await one), "ok")),
      );
      for (const socket of [...peer.open]) {
        await nextTurn();
        assert.equal(isRetired, false);
        socket.write(OK);
      }
      await inTime("all end", ended);
      await inTime("it is retired", retired);
      await until("all are closed", () => peer.open.length === 0);
    }, { isSilent: true }),
);

/** Ways to end a request that waits for its response. */
const ENDS: readonly (readonly [
  string,
  (transport: HttpTransport, abort: AbortController) => unknown,
])[] = [
  ["its signal aborts", (_, abort) => abort.abort(new Error("enough"))],
  ["the transport is closed", (transport) => transport.close()],
];

for (const [why, end] of ENDS) {
  testEachRequest(
    `Transport ends a request and its connection when ${why}`,
    (get) =>
      withPeer(async (transport, peer) => {
        const abort = new AbortController();
        const request: HttpRequest = get("/x", { signal: abort.signal });
        const ended = inTime(
          "the request ends",
          assert.rejects(transport.send(request)),
        );
        await until("it has arrived", () => peer.requests.length === 1);
        end(transport, abort);
        await ended;
        await until("it is closed", () => peer.open.length === 0);
        await inTime("nothing is left", transport.retire());
      }, { isSilent: true }),
  );
}

test("Transport leaves no timer of an open or failed connection", async () => {
  const LIMIT_MS = 54_321;
  const { clearTimeout, setTimeout } = globalThis;
  const timers = new Set<unknown>();
  const delays: number[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(OK));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const transport = await openHttpTransport({
    server: `http://127.0.0.1:${port}`,
    connectTimeout: LIMIT_MS,
  });
  const refusing = await openHttpTransport({
    server: "http://127.0.0.1:1",
    connectTimeout: LIMIT_MS,
  });
  globalThis.setTimeout = ((callback: () => void, delay: number) => {
    const timer = setTimeout(callback, delay);
    delays.push(delay);
    if (delay === LIMIT_MS) timers.add(timer);
    return timer;
  }) as typeof setTimeout;
  globalThis.clearTimeout = ((timer: Parameters<typeof clearTimeout>[0]) => {
    timers.delete(timer);
    clearTimeout(timer);
  }) as typeof clearTimeout;
  try {
    const sent = transport.send(get("/x"));
    assert.equal(timers.size, 1, "while it connects");
    await sent;
    assert.equal(timers.size, 0);
    assert.equal(
      delays.includes(100),
      false,
      "HTTP/1.1 has no limit of streams",
    );
    const abort = new AbortController();
    const given = [
      transport.send({ ...get("/x"), signal: abort.signal }),
      transport.send({ ...get("/x"), signal: abort.signal }),
      refusing.send(get("/x")),
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

test("Transport closes a tunnel that opens after its request was given up", async () => {
  const asked = Promise.withResolvers<Socket>();
  const proxy = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => asked.resolve(socket));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const transport = await openHttpTransport({
    server: "http://127.0.0.1:1",
    proxyUrl: `http://127.0.0.1:${port}`,
  });
  const abort = new AbortController();
  const refused = assert.rejects(
    transport.send({ ...get("/x"), signal: abort.signal }),
    /enough/,
  );
  const tunnel = await inTime("the proxy is asked", asked.promise);
  try {
    abort.abort(new Error("enough"));
    await refused;
    tunnel.resume().write("HTTP/1.1 200 OK\r\n\r\n");
    await inTime("the tunnel is closed", once(tunnel, "close"));
  } finally {
    tunnel.destroy();
    await transport.close();
    proxy.close();
  }
});

test("Transport rejects a request if its certificates are broken", async () => {
  const proxy = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const broken = { certificate: "no certificate", key: "no key" };
  for (const proxyUrl of [undefined, `http://127.0.0.1:${port}`]) {
    const transport = await openHttpTransport({
      server: "https://127.0.0.1:1",
      // Deno reports broken certificates by this limit only.
      connectTimeout: 200,
      ...broken,
      ...(proxyUrl && { proxyUrl }),
    });
    await assert.rejects(
      () => transport.send(get("/x")),
      /^Error: Cannot reach https:\/\/127\.0\.0\.1:1: the connection failed/,
    );
    await transport.close();
  }
  proxy.close();
});
