/**
 * Chunks that are lent to the reader of a response: whose memory is used again, and
 * when.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { after, test } from "node:test";
import {
  LendingSocket,
  type ReadOptions,
} from "../../../../core/client/transport/lending_socket.ts";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { startTlsServer } from "../../../support/tls_server.ts";
import { get, withTransport } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

const server = await startTlsServer();
after(() => server.stop());

const TRUSTED = {
  server: server.url,
  certificateAuthority: server.authority,
};
const BORROWED = { mayPause: true, borrowsChunks: true };
const HEAD = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

test("Transport reads a long body into memory that it uses again", {
  skip: currentRuntime() !== "node",
}, async () => {
  await withTransport(TRUSTED, async (transport) => {
    const { body } = await transport.send(get("/flow", BORROWED));
    const memory = new Set<ArrayBufferLike>();
    let read = 0;
    for await (const chunk of body) {
      memory.add(chunk.buffer);
      read += chunk.byteLength;
      if (read > 64 << 20) break;
    }
    assert.ok(memory.size <= 40, `${memory.size} slabs of 64 KiB`);
  });
});

/** A socket with chunks that wait to be read. */
async function waitingSocket(...chunks: string[]): Promise<LendingSocket> {
  let onread: ReadOptions["onread"] | undefined;
  const socket = new LendingSocket((options) => {
    onread = options.onread;
    return new PassThrough() as unknown as Socket;
  });
  for (const chunk of chunks) {
    Buffer.from(chunk).copy(onread!.buffer);
    onread!.callback(chunk.length);
    await Promise.resolve(); // Each turn passes a chunk on.
  }
  return socket;
}

test("LendingSocket gives each of several chunks that wait without a copy", async () => {
  const text = ["first", "second", "third"];
  const socket = await waitingSocket(...text);
  const chunks: Buffer[] = [];
  for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
    chunks.push(chunk);
  }
  assert.deepEqual(chunks.map(String), text);
  assert.equal(new Set(chunks.map(({ buffer }) => buffer)).size, 1);
  socket.destroy();
});

test("LendingSocket gives the rest of a chunk that is put back without a copy", async () => {
  const socket = await waitingSocket("first", "second");
  const first = socket.read()!;
  socket.unshift(first.subarray(3));
  socket.unshift(first.subarray(0, 0)); // The parser has paused at an end.
  const chunks = [socket.read()!, socket.read()!];
  assert.deepEqual(chunks.map(String), ["st", "second"]);
  assert.ok(chunks.every(({ buffer }) => buffer === first.buffer));
  assert.equal(socket.read(), null);
  socket.destroy();
});

test("LendingSocket gives all that waits once its connection is broken", {
  skip: currentRuntime() !== "node",
}, async () => {
  const socket = await waitingSocket("first", "second");
  socket.destroy();
  assert.equal(String(socket.read()), "firstsecond");
});

test("Transport keeps what a reader has not given back", async () => {
  await withTransport(TRUSTED, async (transport) => {
    const slow = await transport.send(get("/flow", BORROWED));
    const held = await slow.body[Symbol.asyncIterator]().next();
    const chunk: Uint8Array = held.value;
    const { body } = await transport.send(get("/count", BORROWED));
    for await (const _line of body);
    // The lines of the other response have numbers and spaces only.
    assert.ok(chunk.every((byte) => byte === "x".charCodeAt(0)));
    await slow.cancel();
  });
});

test("A reset after a reader of chunks left does not end the process", async () => {
  const sockets = new Set<Socket>();
  const peer = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.once("data", () => socket.write(`${HEAD}5\r\nfirst\r\n`));
  });
  await once(peer.listen(0, "127.0.0.1"), "listening");
  const { port } = peer.address() as AddressInfo;
  await withTransport({ server: `http://127.0.0.1:${port}` }, async (it) => {
    for (const leaves of [false, true]) {
      const response = await it.send(get("/", BORROWED));
      const reader = response.body[Symbol.asyncIterator]();
      await reader.next();
      const next = leaves ? reader.return?.() : reader.next();
      for (const socket of sockets) socket.resetAndDestroy();
      if (leaves) await next;
      else await assert.rejects(next!, /the connection failed/);
      await until("no socket is left", () => sockets.size === 0);
    }
  });
  peer.close();
});

test("A connection of a reader of chunks closes after its response", async () => {
  const sockets = new Set<Socket>();
  const peer = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", () => socket.write(`${HEAD}5\r\nfirst\r\n0\r\n\r\n`));
  });
  await once(peer.listen(0, "127.0.0.1"), "listening");
  const { port } = peer.address() as AddressInfo;
  await withTransport({ server: `http://127.0.0.1:${port}` }, async (it) => {
    const { body } = await it.send(get("/", BORROWED));
    for await (const _chunk of body);
    if (currentRuntime() === "node") {
      await until("no socket is left", () => sockets.size === 0);
    }
  });
  await until("no socket is left", () => sockets.size === 0);
  peer.close();
});
