/**
 * Streams over HTTP/2: which connection has them, and what they survive.
 *
 * @module
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, test as nodeTest, type TestContext } from "node:test";
import { createServer, type TLSSocket } from "node:tls";
import type { HttpRequest, HttpResponse } from "@coracle/operator/client";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { openHttpTransport } from "../../../../core/client/transport/open_transport.ts";
import type { HttpTransport } from "../../../../core/client/transport/transport.ts";
import {
  createAuthority,
  issueCertificate,
} from "../../../../core/admission/certificates.ts";
import { withFrames } from "../../../support/answering_peer.ts";
import {
  END_HEADERS,
  frame,
  headerBlock,
} from "../../../support/http2_frames.ts";
import { runCommand } from "../../../support/child_process.ts";
import { runtimeCommand } from "../../../support/program.ts";
import {
  temporaryFolder,
  writeText,
} from "../../../support/temporary_folder.ts";
import { inTime } from "../../../support/in_time.ts";
import {
  type Http2Server,
  startHttp2Server,
} from "../../../support/tls_server.ts";
import { get, json, text } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

const server = await startHttp2Server();
after(() => server.stop());
const narrow = await startHttp2Server(3);
after(() => narrow.stop());

/** Defines a test on Node, which alone has HTTP/2. */
function test(title: string, run: (t: TestContext) => Promise<void>): void {
  if (currentRuntime() === "node") nodeTest(title, run);
}

function stream(path: string, parts: Partial<HttpRequest> = {}): HttpRequest {
  return get(path, { mayPause: true, ...parts });
}

/** Runs a test with a transport to a server, which then has no connection left. */
async function withStreams(
  run: (transport: HttpTransport, server: Http2Server) => Promise<void>,
  peer: Http2Server = server,
): Promise<void> {
  const transport = await openHttpTransport({
    server: peer.url,
    certificateAuthority: peer.authority,
  });
  try {
    await run(transport, peer);
  } finally {
    await transport.close();
  }
  await until(
    "all connections are closed",
    async () => (await peer.counters("sweep")).connections === 0,
  );
}

/** Response whose lines are read one by one. */
class Lines {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #text = "";

  constructor(response: HttpResponse) {
    assert.equal(response.status, 200);
    this.#chunks = response.body[Symbol.asyncIterator]();
  }

  /** The next line; undefined at the end. */
  async next(): Promise<string | undefined> {
    while (!this.#text.includes("\n")) {
      const { done, value } = await inTime(
        "a line",
        this.#chunks.next(),
      );
      if (done) return undefined;
      this.#text += new TextDecoder().decode(value);
    }
    const [line, ...rest] = this.#text.split("\n");
    this.#text = rest.join("\n");
    return line;
  }

  async leave(): Promise<void> {
    await this.#chunks.return?.();
  }
}

async function watchAll(
  transport: HttpTransport,
  count: number,
): Promise<Lines[]> {
  const sent = Array.from(
    { length: count },
    () => transport.send(stream("/watch")),
  );
  const watches = (await inTime("all begin", Promise.all(sent)))
    .map((response) => new Lines(response));
  for (const watch of watches) assert.equal(await watch.next(), "begun");
  return watches;
}

test("Streams share a connection of HTTP/2, short requests use HTTP/1.1", () =>
  withStreams(async (transport) => {
    const before = await server.counters();
    const watches = await watchAll(transport, 40);
    for (let i = 0; i < 3; i++) {
      const { version } = await json(await transport.send(get("/whoami")));
      assert.equal(version, "1.1");
    }
    const { version, headers } = await json(
      await transport.send(stream("/whoami?x", { headers: { "x-a": "b" } })),
    );
    assert.equal(version, "2.0");
    assert.equal((headers as Record<string, string>)["x-a"], "b");
    await server.counters("event");
    for (const watch of watches) assert.equal(await watch.next(), "event");
    const now = await server.counters();
    assert.equal(now.sessions - before.sessions, 1);
    assert.equal(now.connections - before.connections, 2);
    await server.counters("end");
    for (const watch of watches) assert.equal(await watch.next(), undefined);
  }));

nodeTest("Streams on Deno and Bun have connections of HTTP/1.1", async () => {
  if (currentRuntime() === "node") return;
  await withStreams(async (transport) => {
    const before = await server.counters();
    const watches = await watchAll(transport, 20);
    await server.counters("event");
    for (const watch of watches) assert.equal(await watch.next(), "event");
    const now = await server.counters();
    assert.equal(now.connections - before.connections, 20);
    assert.equal(now.sessions, before.sessions);
  });
});

test("Streams beyond a hundred have further connections of HTTP/2", () =>
  withStreams(async (transport) => {
    const before = await server.counters();
    const watches = await watchAll(transport, 250);
    const { sessions } = await server.counters();
    assert.equal(sessions - before.sessions, 3);
    await server.counters("event");
    for (const watch of watches) assert.equal(await watch.next(), "event");
  }));

test("Streams beyond the limit of the server have further connections", () =>
  withStreams(async (transport, narrow) => {
    const before = await narrow.counters();
    const watches = await watchAll(transport, 10);
    const { sessions } = await narrow.counters();
    assert.equal(sessions - before.sessions, 4);
    // Room that a stream leaves is used again.
    await watches[0]?.leave();
    await until(
      "it has ended",
      async () => (await narrow.counters()).watches === 9,
    );
    await watchAll(transport, 1);
    assert.equal((await narrow.counters()).sessions - before.sessions, 4);
  }, narrow));

test("A connection that no stream waits for any more is not opened", async () => {
  const authority = createAuthority({ commonName: "silent" });
  const pair = issueCertificate(authority, {
    commonName: "silent",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  const open = new Set<TLSSocket>();
  const silent = createServer({
    cert: pair.certificate,
    key: pair.key,
    ALPNProtocols: ["h2"],
  }, (socket) => {
    open.add(socket.resume());
    socket.on("error", () => {}).on("close", () => open.delete(socket));
  });
  await once(silent.listen(0, "127.0.0.1"), "listening");
  const { port } = silent.address() as AddressInfo;
  const transport = await openHttpTransport({
    server: `https://127.0.0.1:${port}`,
    certificateAuthority: authority.certificate,
  });
  try {
    const readers = Array.from({ length: 4 }, () => new AbortController());
    const sent = readers.map(({ signal }) =>
      assert.rejects(transport.send(stream("/watch", { signal })))
    );
    await until("the server is reached", () => open.size === 1);
    for (const reader of readers) {
      reader.abort();
      await Promise.resolve();
    }
    await Promise.all(sent);
    await transport.close();
    await until("no connection is left", () => open.size === 0);
  } finally {
    await transport.close();
    for (const socket of open) socket.destroy();
    silent.close();
  }
});

test("Writes, lines of a header and logs use HTTP/1.1", () =>
  withStreams(async (transport) => {
    const requests: HttpRequest[] = [
      stream("/whoami", { repeatedHeaders: { group: ["one", "two"] } }),
      stream("/whoami", { method: "POST", body: "{}" }),
      stream("/whoami", { mustBeWhole: true }),
    ];
    for (const request of requests) {
      const { version } = await json(await transport.send(request));
      assert.equal(version, "1.1");
    }
  }));

test("Streams go on after a graceful GOAWAY, and new ones begin elsewhere", () =>
  withStreams(async (transport) => {
    const before = await server.counters();
    const old = await watchAll(transport, 10);
    await server.counters("goaway");
    // Behind the GOAWAY, which has arrived with it.
    await server.counters("event");
    for (const watch of old) assert.equal(await watch.next(), "event");
    const young = await watchAll(transport, 10);
    assert.equal((await server.counters()).sessions - before.sessions, 2);
    await server.counters("event");
    for (const watch of [...old, ...young]) {
      assert.equal(await watch.next(), "event");
    }
    await Promise.all(old.map((watch) => watch.leave()));
    // The connection without streams is closed.
    await until(
      "one connection is left",
      async () => (await server.counters()).connections === 1,
    );
  }));

test("Streams begin while the server ends its session", () =>
  withStreams(async (transport) => {
    for (let round = 0; round < 20; round++) {
      const sent = Array.from(
        { length: 10 },
        () => transport.send(stream("/whoami")),
      );
      const closed = server.counters("close");
      for (const response of await inTime("all", Promise.all(sent))) {
        assert.equal((await json(response))["version"], "2.0");
      }
      await closed;
    }
  }));

test("A session that the server closes is replaced, and its streams go on", () =>
  withStreams(async (transport) => {
    const [old] = await watchAll(transport, 1);
    await server.counters("close");
    const [young] = await watchAll(transport, 1);
    await server.counters("event");
    assert.equal(await old?.next(), "event");
    assert.equal(await young?.next(), "event");
  }));

test("A GOAWAY with an error fails only the streams of its connection", () =>
  withStreams(async (transport) => {
    const [old] = await watchAll(transport, 1);
    await server.counters("goaway-error");
    const [young] = await watchAll(transport, 1);
    await server.counters("event");
    assert.equal(await young?.next(), "event");
    // It may have come before the failure.
    const end = async () => {
      if (await old?.next() === "event") await old?.next();
    };
    await assert.rejects(end(), /Cannot reach/);
  }));

test("Streams that the server resets fail alone", () =>
  withStreams(async (transport) => {
    const [watch] = await watchAll(transport, 1);
    const reach = /^Error: Cannot reach https:/;
    await assert.rejects(transport.send(stream("/reset")), reach);
    await assert.rejects(transport.send(stream("/refuse")), reach);
    const half = await transport.send(stream("/reset-body"));
    await assert.rejects(text(half), reach);
    await server.counters("event");
    assert.equal(await watch?.next(), "event");
    // Deno gives up the connection for it.
    const lying = transport.send(stream("/lying-length")).then(text);
    await assert.rejects(lying, reach);
  }));

test("A connection that is cut fails its streams, and is replaced", () =>
  withStreams(async (transport) => {
    const watches = await watchAll(transport, 20);
    await server.counters("cut");
    for (const watch of watches) {
      await assert.rejects(watch.next(), /^Error: Cannot reach https:/);
    }
    await watchAll(transport, 1);
  }));

/** Passes the time until the next ping, for all connections at once. */
type PassPing = () => void;

/** Takes over the intervals of undici, which pings by them every 20 seconds. */
function withPings(t: TestContext): PassPing {
  const pings: (() => void)[] = [];
  const { setInterval } = globalThis;
  t.mock.method(globalThis, "setInterval", (...args: unknown[]) => {
    const [call, delay, of] = args as [(of: unknown) => void, number, unknown];
    if (delay !== 20_000) return setInterval(call, delay, of);
    pings.push(() => call(of));
    return setInterval(() => {}, delay);
  });
  return () => {
    assert.notEqual(pings.length, 0);
    for (const ping of pings) ping();
  };
}

test("A connection that does not answer two pings is replaced, its streams fail", async (t) => {
  const pass = withPings(t);
  const head = headerBlock([[":status", "200"]]);
  // The peer answers streams, and no pings.
  const begin = (id: number) => frame("HEADERS", END_HEADERS, id, head);
  await withFrames([begin, begin], async (transport, peer) => {
    const send = () => transport.send(stream("/watch"));
    const { body } = await inTime("the head", send());
    const chunk = body[Symbol.asyncIterator]().next();
    let failure: unknown;
    chunk.catch((error) => failure = error);
    pass();
    await inTime("a turn", new Promise(setImmediate));
    assert.equal(failure, undefined);
    pass();
    await assert.rejects(inTime("the failure", chunk), /Cannot reach https:/);
    assert.equal((await inTime("the head", send())).status, 200);
    assert.equal(peer.connections, 2);
  });
});

test("A connection that answers its pings keeps its streams", (t) => {
  const pass = withPings(t);
  return withStreams(async (transport) => {
    const before = await server.counters();
    const [watch] = await watchAll(transport, 1) as [Lines];
    for (let i = 0; i < 4; i++) {
      pass();
      // Its answer follows that of the ping.
      await text(await transport.send(stream("/whoami")));
    }
    await server.counters("event");
    assert.equal(await watch.next(), "event");
    const now = await server.counters();
    assert.equal(now.sessions - before.sessions, 1);
  });
});

test("Forty streams that nobody reads do not stop another one", () =>
  withStreams(async (transport) => {
    const unread = await Promise.all(
      Array.from({ length: 40 }, () => transport.send(stream("/flow"))),
    );
    let last = -1;
    // The sender stops when all windows are full.
    await until("the flow stops", async () => {
      const { flowBytes } = await server.counters();
      const stopped = flowBytes === last;
      last = flowBytes;
      return stopped;
    }, { every: 200, within: 20_000 });
    const [watch] = await watchAll(transport, 1);
    for (let i = 0; i < 3; i++) {
      await server.counters("event");
      assert.equal(await watch?.next(), "event");
    }
    // A slow reader goes on where it was.
    let read = 0;
    const [first] = unread;
    for await (const chunk of first?.body ?? []) {
      read += chunk.byteLength;
      if (read > 4 << 20) break;
    }
    assert.ok(read > 4 << 20);
    assert.ok(last < 100 << 20, `${last} bytes were sent to nobody`);
  }));

test("A stream ends with its signal, in every state, and no other one", () =>
  withStreams(async (transport) => {
    const reason = new Error("enough");
    const first = new AbortController();
    // Before the handshake.
    const early = transport.send(stream("/watch", { signal: first.signal }));
    first.abort(reason);
    await assert.rejects(early, reason);
    const [watch] = await watchAll(transport, 1);
    const { abandoned, requests } = await server.counters();
    const waiting = new AbortController();
    const silent = transport.send(
      stream("/silent", { signal: waiting.signal }),
    );
    const ended = assert.rejects(silent, reason);
    await until(
      "it has arrived",
      async () => (await server.counters()).requests > requests,
    );
    waiting.abort(reason);
    await ended;
    const reading = new AbortController();
    const response = new Lines(
      await transport.send(stream("/watch", { signal: reading.signal })),
    );
    assert.equal(await response.next(), "begun");
    const next = assert.rejects(response.next(), reason);
    reading.abort(reason);
    await next;
    const left = new Lines(await transport.send(stream("/watch")));
    await left.leave();
    const cancelled = await transport.send(stream("/watch"));
    await cancelled.cancel();
    await until(
      "all are reset",
      async () => (await server.counters()).abandoned - abandoned === 4,
    );
    await server.counters("event");
    assert.equal(await watch?.next(), "event");
  }));

test("A stream is not sent if its check throws, and others go on", () =>
  withStreams(async (transport) => {
    const [watch] = await watchAll(transport, 1);
    const { requests } = await server.counters();
    const refused = new RangeError("No longer allowed");
    const beforeSend = () => {
      throw refused;
    };
    await assert.rejects(
      transport.send(stream("/whoami", { beforeSend })),
      refused,
    );
    await server.counters("event");
    assert.equal(await watch?.next(), "event");
    assert.equal((await server.counters()).requests, requests);
  }));

test("A transport that closes ends its streams", () =>
  withStreams(async (transport) => {
    const watches = await watchAll(transport, 20);
    await transport.close();
    for (const watch of watches) {
      await assert.rejects(watch.next(), /the connections were closed/);
    }
    await assert.rejects(transport.send(stream("/watch")), /were closed/);
  }));

test("A transport that retires waits for its streams", () =>
  withStreams(async (transport) => {
    const watches = await watchAll(transport, 3);
    let isRetired = false;
    const retired = transport.retire().then(() => isRetired = true);
    await server.counters("event");
    for (const watch of watches) assert.equal(await watch.next(), "event");
    assert.equal(isRetired, false);
    await server.counters("end");
    for (const watch of watches) assert.equal(await watch.next(), undefined);
    await inTime("it retires", retired);
  }));

test("Responses over HTTP/2 have no interim ones, and may have no body", () =>
  withStreams(async (transport) => {
    assert.equal(
      await text(await transport.send(stream("/hints"))),
      "after hints",
    );
    const empty = await transport.send(stream("/empty"));
    assert.equal(empty.status, 204);
    assert.equal(await text(empty), "");
  }));

nodeTest("A process ends although its connections are idle", async () => {
  const file = writeText(temporaryFolder(), "ca.pem", server.authority);
  const command = [...runtimeCommand(), "tests/support/idle_child.ts"];
  const { code, stdout, stderr } = await runCommand(
    [...command, server.url, file],
    { limit: 20_000 },
  );
  assert.equal(code, 0, stderr);
  const second = currentRuntime() === "node" ? "2.0" : "1.1";
  assert.deepEqual(stdout.split("\n"), ["1.1", "1.1", second, second, ""]);
});
