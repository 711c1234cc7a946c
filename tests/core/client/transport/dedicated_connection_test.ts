import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type {
  Connected,
  Connector,
  ReadTarget,
} from "../../../../core/client/transport/connect.ts";
import {
  DedicatedConnection,
  ReadBuffers,
} from "../../../../core/client/transport/dedicated_connection.ts";
import {
  ResponseStream,
  type ResponseStreamDeps,
} from "../../../../core/client/transport/response_stream.ts";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import {
  type HttpResponse,
  OpenRequests,
} from "../../../../core/client/transport/transport.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { inTime } from "../../../support/in_time.ts";

const HEAD = "HTTP/1.1 200 OK\r\n\r\n";

/** Socket without a peer. */
class SilentSocket extends EventEmitter {
  destroyed = false;
  isPaused = false;
  writes = 0;
  write(): void {
    this.writes++;
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  destroy(): void {
    this.destroyed = true;
  }
}

/** Buffers that are counted. */
class CountedBuffers extends ReadBuffers {
  taken = 0;
  given = 0;
  override take() {
    this.taken++;
    return super.take();
  }
  override give(memory: ArrayBufferLike): void {
    this.given++;
    super.give(memory);
  }
}

/** A connection whose socket the test opens and whose bytes it sends. */
function connection(parts: Partial<ResponseStreamDeps> = {}) {
  const socket = new SilentSocket();
  const buffers = new CountedBuffers();
  const response = Promise.withResolvers<HttpResponse>();
  response.promise.catch(() => {});
  const state = { isCancelled: false };
  let connected: Connected = () => {};
  let target: ReadTarget | undefined;
  const connector = {
    open(done: Connected, onread?: ReadTarget) {
      connected = done;
      target = onread;
      return () => state.isCancelled = true;
    },
  } as unknown as Connector;
  const stream = new ResponseStream({
    origin: "http://127.0.0.1:1",
    signal: undefined,
    requests: new OpenRequests(),
    resolve: response.resolve,
    reject: response.reject,
    ...parts,
  });
  new DedicatedConnection(stream, new Uint8Array(1), { connector, buffers });
  return {
    socket,
    buffers,
    state,
    stream,
    response: response.promise,
    open: () => connected(null, socket as never),
    receive(text: string) {
      const buffer = target?.buffer() as Uint8Array;
      const { read, written } = new TextEncoder().encodeInto(text, buffer);
      assert.equal(read, text.length, "as much as the buffer takes");
      assert.ok(target?.callback(written));
    },
  };
}

/** The next chunk of a body as text; undefined at its end. */
async function next(
  body: AsyncIterator<Uint8Array>,
): Promise<string | undefined> {
  const { done, value } = await inTime("a chunk", body.next(), 5_000);
  return done ? undefined : new TextDecoder().decode(value);
}

test("DedicatedConnection delivers what arrives in a turn as one chunk", async () => {
  const { open, receive, response, socket } = connection();
  open();
  assert.equal(socket.writes, 1);
  receive(HEAD);
  const body = (await response).body[Symbol.asyncIterator]();
  for (const turn of ["first", "second", "third"]) {
    receive(`${turn} `);
    receive("chunk");
    assert.equal(await next(body), `${turn} chunk`);
  }
  receive("rest");
  socket.emit("end");
  assert.equal(await next(body), "rest");
  assert.equal(await next(body), undefined);
  assert.ok(socket.destroyed);
});

test("DedicatedConnection delivers what arrives alone before the turn ends", async () => {
  const { open, receive, response } = connection();
  open();
  receive(HEAD);
  const body = (await response).body[Symbol.asyncIterator]();
  const turn = new Promise((resolve) => setImmediate(resolve, "the end"));
  receive("event");
  assert.equal(await Promise.race([turn, next(body)]), "event");
});

test("DedicatedConnection reads a long stream into a few buffers", async () => {
  const { open, receive, response, buffers } = connection();
  open();
  receive(HEAD);
  const body = (await response).body[Symbol.asyncIterator]();
  const part = "x".repeat(10_000);
  for (let i = 0; i < 100; i++) {
    receive(part);
    assert.equal(await next(body), part);
  }
  assert.ok(buffers.taken > 15, `${buffers.taken} were filled`);
  // All but the one that is read and the one that is filled.
  assert.ok(buffers.given >= buffers.taken - 2, `${buffers.given} came back`);
  assert.ok(buffers.given < buffers.taken, "each once, when it was read");
});

test("DedicatedConnection ends with the last byte of its response", async () => {
  const { open, receive, response, socket } = connection();
  open();
  receive("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab");
  const body = (await response).body[Symbol.asyncIterator]();
  assert.equal(await next(body), "ab");
  assert.equal(await next(body), undefined);
  assert.ok(socket.destroyed);
});

test("DedicatedConnection gives the head that arrives with a broken body", async () => {
  const { open, receive, response } = connection();
  open();
  receive("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size");
  const { body, status } = await response;
  assert.equal(status, 200);
  await assert.rejects(
    next(body[Symbol.asyncIterator]()),
    /a chunk must begin with a line of its size/,
  );
});

test("DedicatedConnection lends chunks of statuses below 300 only", async () => {
  for (const status of [206, 299, 300, 399]) {
    const { open, receive, response, buffers } = connection();
    open();
    receive(`HTTP/1.1 ${status} x\r\n\r\n`);
    const body = (await response).body[Symbol.asyncIterator]();
    // So much fills a buffer, whose memory comes back if it was lent.
    for (let read = 0; read < 2; read++) {
      receive("x".repeat(50_000));
      await next(body);
    }
    assert.equal(buffers.given > 0, status < 300, `${status}`);
  }
});

test("DedicatedConnection lends no chunks of an error response", async () => {
  const { open, receive, response, buffers } = connection();
  open();
  receive("HTTP/1.1 500 Internal Server Error\r\n\r\n");
  const body = (await response).body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  for (const letter of "abcdefghij") {
    receive(letter.repeat(10_000));
    const { value } = await body.next();
    chunks.push(value);
  }
  assert.equal(buffers.given, 0);
  assert.deepEqual(
    chunks.map(([first]) => first),
    [..."abcdefghij"].map(
      (letter) => letter.charCodeAt(0),
    ),
  );
});

test("ReadBuffers keeps eight free buffers, and no more", () => {
  const buffers = new ReadBuffers();
  const taken = Array.from({ length: 20 }, () => buffers.take().buffer);
  for (const memory of taken) buffers.give(memory);
  const again = Array.from({ length: 20 }, () => buffers.take().buffer);
  assert.equal(again.filter((memory) => taken.includes(memory)).length, 8);
});

/** Ends of a connection, and what the reader of its response receives. */
const ENDS: readonly (readonly [
  string,
  (parts: ReturnType<typeof connection>) => unknown,
  RegExp,
])[] = [
  ["aborted before it is open", ({ stream }) => {
    stream.abort(new Error("enough"));
  }, /enough/],
  ["aborted", ({ open, stream }) => {
    open();
    stream.abort(new Error("enough"));
  }, /enough/],
  ["broken", ({ open, socket }) => {
    open();
    socket.emit("error", new Error("reset"));
  }, /received reset/],
  ["closed within the head", ({ open, receive, socket }) => {
    open();
    receive("HTTP/1.1 200");
    socket.emit("close");
  }, /ended within the head/],
  ["no HTTP", ({ open, receive }) => {
    open();
    receive("garbage\r\n\r\n");
  }, /must begin with a status line/],
];

for (const [what, end, expected] of ENDS) {
  test(`DedicatedConnection leaves nothing when it is ${what}`, async () => {
    const parts = connection();
    const { response, socket, state } = parts;
    end(parts);
    await assert.rejects(inTime("its end", response, 5_000), expected);
    assert.ok(state.isCancelled, "it connects no longer");
    if (!what.includes("before")) assert.ok(socket.destroyed);
  });
}

test("DedicatedConnection delivers what came before it broke", async () => {
  const { open, receive, response, socket } = connection();
  open();
  receive(`HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf`);
  socket.emit("end");
  socket.emit("close");
  const body = (await response).body[Symbol.asyncIterator]();
  assert.equal(await next(body), "half");
  await assert.rejects(next(body), /ended within the body/);
});

test("DedicatedConnection writes nothing if its request is refused", () => {
  const { open, socket } = connection({
    beforeSend: () => {
      throw new Error("no longer");
    },
  });
  open();
  assert.equal(socket.writes, 0);
  assert.ok(socket.destroyed);
});

test("DedicatedConnection stops reading while nobody reads its response", async () => {
  // Its sockets read on while they are paused.
  if (currentRuntime() === "deno") return;
  const { open, receive, response, socket } = connection();
  open();
  receive(HEAD);
  const body = (await response).body[Symbol.asyncIterator]();
  for (const round of ["first", "second"]) {
    for (let i = 0; i < 30; i++) {
      receive("x".repeat(10_000));
      await nextTurn();
    }
    assert.ok(socket.isPaused, `paused, ${round}`);
    for (let i = 0; i < 30; i++) await body.next();
    assert.ok(!socket.isPaused, `goes on, ${round}`);
  }
});
