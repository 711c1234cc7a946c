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
import {
  createAuthority,
  issueCertificate,
} from "../../../../dev/apiserver/certificates.ts";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { openHttpTransport } from "../../../../core/client/transport/transport_node.ts";
import type {
  HttpRequest,
  HttpTransport,
} from "../../../../core/client/transport/transport.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { inTime } from "../../../support/in_time.ts";
import { get, testBoth, text } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

const SOON = { within: 5_000 };
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Peer of a transport, which answers when the test says so. */
class Peer {
  /** Sockets that are open, in the order of their connections. */
  readonly open: Socket[] = [];
  /** Number of the connection of each request. */
  readonly requests: number[] = [];
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
    socket.on("data", () => {
      this.requests.push(number);
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
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const transport = openHttpTransport({
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

/** Long timer that the test fires. */
class LongTimer {
  isReferenced = true;
  readonly due: number;
  readonly fire: () => void;

  constructor(fire: () => void, due: number) {
    this.fire = fire;
    this.due = due;
  }

  unref(): void {
    this.isReferenced = false;
  }
}

/** Time of the runtime, which the test moves; timers below 15 s are real ones. */
async function withTime(
  run: (time: {
    readonly timers: ReadonlySet<LongTimer>;
    pass(milliseconds: number): void;
  }) => Promise<void>,
): Promise<void> {
  const { clearTimeout, setTimeout } = globalThis;
  const { now } = performance;
  const timers = new Set<LongTimer>();
  let passed = 0;
  performance.now = () => now.call(performance) + passed;
  globalThis.setTimeout = ((callback: () => void, delay: number) => {
    if (delay < 15_000) return setTimeout(callback, delay);
    const timer = new LongTimer(callback, performance.now() + delay);
    timers.add(timer);
    return timer;
  }) as typeof setTimeout;
  globalThis.clearTimeout = ((timer: unknown) => {
    if (timer instanceof LongTimer) timers.delete(timer);
    else clearTimeout(timer as Parameters<typeof clearTimeout>[0]);
  }) as typeof clearTimeout;
  try {
    await run({
      timers,
      pass(milliseconds) {
        passed += milliseconds;
        for (const timer of [...timers]) {
          if (timer.due > performance.now()) continue;
          timers.delete(timer);
          timer.fire();
        }
      },
    });
  } finally {
    performance.now = now;
    Object.assign(globalThis, { clearTimeout, setTimeout });
  }
}

test("Transport over sockets uses the connection that was used last", () =>
  withPeer(async (transport, peer) => {
    await readAtOnce(transport, 3);
    for (let i = 0; i < 4; i++) await readAtOnce(transport, 1);
    assert.equal(peer.open.length, 3);
    assert.equal(new Set(peer.requests.slice(3)).size, 1);
  }));

test("Transport over sockets keeps an idle connection when another one breaks", () =>
  withPeer(async (transport, peer) => {
    await readAtOnce(transport, 2);
    const controller = new AbortController();
    const { signal } = controller;
    peer.isSilent = true;
    const ended = assert.rejects(transport.send(get("/x", { signal })));
    await until("it was sent", () => peer.requests.length === 3, SOON);
    controller.abort();
    await ended;
    await until("it is closed", () => peer.open.length === 1, SOON);
    peer.isSilent = false;
    await readAtOnce(transport, 1);
    assert.equal(new Set(peer.requests).size, 2, "no third connection");
  }));

test("Transport over sockets that retires waits for no request that was refused", () =>
  withPeer(async (transport) => {
    const headers = { "bad name": "x" };
    await assert.rejects(transport.send(get("/x", { headers })), /is invalid/);
    await inTime("its end", transport.retire(), 5_000);
  }));

test("Transport over sockets closes a connection after a minute without use", () =>
  withTime((time) =>
    withPeer(async (transport, peer) => {
      await readAtOnce(transport, 3);
      // Two are idle from now on.
      for (let i = 0; i < 5; i++) {
        time.pass(20_000);
        assert.ok([...time.timers].every((timer) => !timer.isReferenced));
        if (i < 2) assert.equal(peer.open.length, 3);
        await readAtOnce(transport, 1);
      }
      await until("two are closed", () => peer.open.length === 1, SOON);
      time.pass(100_000);
      await until("none is left", () => peer.open.length === 0, SOON);
      assert.equal(time.timers.size, 0, "no timer without a connection");
      await readAtOnce(transport, 1);
      assert.equal(time.timers.size, 1);
      await transport.close();
      assert.equal(time.timers.size, 0, "no timer after the end");
    })
  ));

test("Transport over sockets keeps no process alive by an idle connection", () =>
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
        await until(`both are free, ${round}`, () => free.size === 2, SOON);
      }
    } finally {
      Object.assign(Socket.prototype, { ref, unref });
    }
  }));

testBoth(
  "Transport over sockets gives up a connection with the request that waits for it",
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
      await until("it is closed", () => peer.open.length === 0, SOON);
    }, { isSilent: true, scheme: "https" });
  },
);

test("Transport over sockets speaks HTTP/1.1 over TLS, and resumes its session", async () => {
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
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const transport = openHttpTransport({
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

test("Transport over sockets sends small requests without a delay", () =>
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

test("Transport over sockets gives up a silent proxy at its own time limit", async () => {
  const proxy = new Peer(true);
  const listener = createServer(proxy.accept);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  for (const scheme of ["http", "socks5"]) {
    const transport = openHttpTransport({
      server: "https://127.0.0.1:1",
      proxyUrl: `${scheme}://127.0.0.1:${port}`,
      connectTimeout: 100,
    });
    const sent = transport.send(get("/x"));
    await inTime("it fails", assert.rejects(sent, /within 100 ms/), 5_000);
    await until("its socket is closed", () => proxy.open.length === 0, SOON);
    await transport.close();
  }
  listener.close();
});

testBoth(
  "Transport over sockets that retires serves all requests in progress first",
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
      await inTime("all end", ended, 5_000);
      await inTime("it is retired", retired, 5_000);
      await until("all are closed", () => peer.open.length === 0, SOON);
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
  testBoth(
    `Transport over sockets ends a request and its connection when ${why}`,
    (get) =>
      withPeer(async (transport, peer) => {
        const abort = new AbortController();
        const request: HttpRequest = get("/x", { signal: abort.signal });
        const ended = inTime(
          "the request ends",
          assert.rejects(transport.send(request)),
          10_000,
        );
        await until("it has arrived", () => peer.requests.length === 1);
        end(transport, abort);
        await ended;
        await until("it is closed", () => peer.open.length === 0, SOON);
        await inTime("nothing is left", transport.retire(), 10_000);
      }, { isSilent: true }),
  );
}
