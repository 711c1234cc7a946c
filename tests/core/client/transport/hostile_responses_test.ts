/**
 * Responses that break the rules of HTTP: each fails its request alone, its
 * connection is given up where it must be, and the next request is served.
 *
 * One list for both versions; HTTP/2 is tried on Node, which alone has it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import {
  type Answer,
  CHUNKED,
  endless,
  HEAD,
  OK,
  thenEnd,
  withAnswers,
  withFrames,
} from "../../../support/answering_peer.ts";
import {
  END_HEADERS,
  END_STREAM,
  frame,
  headerBlock,
  uint32,
} from "../../../support/http2_frames.ts";
import { inTime } from "../../../support/in_time.ts";
import { get, text } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

/** Answer to a stream of HTTP/2. */
type Frames = (stream: number) => Answer;
/**
 * Response that is given without one of its headers: nghttp2 drops it. Node shows
 * it neither in the raw headers nor by an event, whatever the limits of invalid
 * frames and `strictFieldWhitespaceValidation` are, so that nobody above can refuse
 * the response. It fails here once Node shows it.
 */
interface WithoutHeader {
  readonly name: string;
  readonly frames: Frames;
}
/** Why a version cannot have this kind. */
interface Missing {
  readonly why: string;
}

/** Longer than the limit of HTTP/1.1, and than that of Node for HTTP/2. */
const [LONG, LONGER] = ["b".repeat(16_400), "b".repeat(70_000)];
const [LINES, CHUNKS, FRAMES] = [
  { why: "HTTP/2 has no lines" },
  { why: "HTTP/2 has no chunks: a frame's head has its length" },
  { why: "HTTP/1.1 has no frames" },
];

/** Frames one after the other. */
function frames(...give: readonly ((stream: number) => Buffer)[]): Frames {
  return (stream) => Buffer.concat(give.map((each) => each(stream)));
}

/** Head of a response. */
function head(
  ...headers: readonly (readonly [string, string])[]
): (stream: number) => Buffer {
  return headOf([[":status", "200"], ...headers]);
}

/** Block of headers, in as many frames as it needs. */
function headOf(
  headers: readonly (readonly [string, string])[],
  flags = 0,
): (stream: number) => Buffer {
  return (stream) => {
    const block = headerBlock(headers);
    const parts: Buffer[] = [];
    for (let at = 0; at < block.byteLength; at += 16_384) {
      const isLast = at + 16_384 >= block.byteLength;
      parts.push(frame(
        at === 0 ? "HEADERS" : "CONTINUATION",
        (isLast ? END_HEADERS : 0) | (at === 0 ? flags : 0),
        stream,
        block.subarray(at, at + 16_384),
      ));
    }
    return Buffer.concat(parts);
  };
}

/** Part of a body. */
function data(body: string, flags = 0): (stream: number) => Buffer {
  return (stream) => frame("DATA", flags, stream, body);
}

/** Response of two bytes with these headers. */
function body(...headers: readonly (readonly [string, string])[]): Frames {
  return frames(head(...headers), data("ab", END_STREAM));
}

/** Response of two bytes; one of its headers is dropped. */
function leftOut(name: string, value: string): WithoutHeader {
  return { name, frames: body([name, value]) };
}

/** One kind of a hostile response: what a server sends in each version. */
type Kind = readonly [
  what: string,
  http1: Answer | Missing,
  http2: Frames | WithoutHeader | Missing,
];

const KINDS: readonly Kind[] = [
  // The protocol.
  [
    "another protocol",
    "SSH-2.0-OpenSSH_9.6\r\n\r\n",
    () => "SSH-2.0-OpenSSH_9.6\r\n\r\n",
  ],
  ["the other version", "HTTP/2 200\r\n\r\n", () => `${OK}ab`],
  ["a version that is none", "HTTP/1.2 200 OK\r\n\r\n", LINES],
  // The status.
  [
    "no status code",
    "HTTP/1.1 OK\r\n\r\n",
    frames(headOf([["a", "b"]]), data("ab", END_STREAM)),
  ],
  [
    "two status codes",
    { why: "the status line has one" },
    frames(head([":status", "404"]), data("ab", END_STREAM)),
  ],
  [
    "a status code of four digits",
    "HTTP/1.1 2000 OK\r\n\r\n",
    frames(headOf([[":status", "2000"]]), data("ab", END_STREAM)),
  ],
  [
    "a switch of protocols",
    "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    frames(headOf([[":status", "101"]], END_STREAM)),
  ],
  [
    "endless interim responses",
    endless("", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(20)),
    (stream) => {
      const interim = headOf([[":status", "103"], ["link", "x"]])(stream);
      return endless("", Buffer.concat(Array(20).fill(interim)));
    },
  ],
  // The headers.
  ["lines that end with LF", "HTTP/1.1 200 OK\n\n", LINES],
  [
    "CR within a header",
    `${HEAD}a: b\rc: d\r\n\r\n`,
    leftOut("a", "b\rc: d"),
  ],
  [
    "a folded header",
    `${HEAD}a: b\r\n c\r\n\r\n`,
    leftOut("a", "b\r\n c"),
  ],
  ["a NUL in a header", `${HEAD}a: \0\r\n\r\n`, leftOut("a", "\0")],
  [
    "a space in the name of a header",
    `${HEAD}a : b\r\n\r\n`,
    leftOut("a ", "b"),
  ],
  ["a header without a name", `${HEAD}: b\r\n\r\n`, leftOut("", "b")],
  ["a header without a colon", `${HEAD}a\r\n\r\n`, LINES],
  [
    "a capital in the name of a header",
    { why: "HTTP/1.1 allows it" },
    body(["Date", "b"]),
  ],
  [
    "a header of the connection",
    { why: "HTTP/1.1 has them" },
    body(["connection", "keep-alive"]),
  ],
  [
    "a pseudo-header of a request",
    { why: "HTTP/1.1 has none" },
    body([":path", "/"]),
  ],
  [
    "a head that is too long",
    `${HEAD}a: ${LONG}\r\n\r\n`,
    body(["a", LONGER]),
  ],
  [
    "endless headers",
    endless(HEAD, `a: ${"b".repeat(500)}\r\n`.repeat(20)),
    (stream) =>
      endless(
        frame("HEADERS", 0, stream, headerBlock([[":status", "200"]])),
        Buffer.concat(
          Array(20).fill(
            frame("CONTINUATION", 0, stream, headerBlock([["a", "b"]])),
          ),
        ),
      ),
  ],
  [
    "an endless header",
    endless(`${HEAD}a: `, "b".repeat(10_000)),
    { why: "the length comes first" },
  ],
  [
    "an endless name of a header",
    endless(HEAD, "a".repeat(10_000)),
    { why: "the length comes first" },
  ],
  [
    "headers that no table explains",
    { why: "HTTP/1.1 does not compress them" },
    frames((stream) => frame("HEADERS", END_HEADERS, stream, "\xff\xff\xff")),
  ],
  // The length.
  [
    "two lengths",
    `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nab`,
    body(["content-length", "1"], ["content-length", "2"]),
  ],
  [
    "the same length twice",
    `${HEAD}content-length: 1\r\ncontent-length: 1\r\n\r\na`,
    body(["content-length", "2"], ["content-length", "2"]),
  ],
  [
    "a negative length",
    `${HEAD}content-length: -1\r\n\r\n`,
    body(["content-length", "-1"]),
  ],
  [
    "a hexadecimal length",
    `${HEAD}content-length: 0x1\r\n\r\na`,
    body(["content-length", "0x2"]),
  ],
  [
    "a length that no number has",
    `${HEAD}content-length: ${"9".repeat(30)}\r\n\r\n`,
    body(["content-length", "9".repeat(30)]),
  ],
  [
    "a length that is too high",
    thenEnd(`${HEAD}content-length: 4\r\n\r\nab`),
    body(["content-length", "4"]),
  ],
  [
    "a length that is too low",
    { why: "it is a whole response, whose connection is not used again" },
    body(["content-length", "1"]),
  ],
  [
    "a length of chunks",
    `${HEAD}transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n0\r\n\r\n`,
    CHUNKS,
  ],
  [
    "a transfer coding that is unknown",
    `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    body(["transfer-encoding", "gzip, chunked"]),
  ],
  [
    "a transfer coding that stands twice",
    `${HEAD}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    body(["transfer-encoding", "chunked"]),
  ],
  // Chunks, and the frames that stand for them.
  ["a chunk without a size", `${CHUNKED}\r\n`, CHUNKS],
  ["a chunk with only an extension", `${CHUNKED};a\r\n`, CHUNKS],
  ["a signed size", `${CHUNKED}+1\r\na\r\n`, CHUNKS],
  [
    "a size with another letter",
    `${CHUNKED}1g\r\na\r\n0\r\n\r\n`,
    CHUNKS,
  ],
  ["a size with a prefix", `${CHUNKED}0x1\r\na\r\n`, CHUNKS],
  [
    "a size that no number has",
    `${CHUNKED}${"f".repeat(30)}\r\n`,
    frames(head(), (stream) => frame("DATA", 0, stream, "ab", 2 ** 24 - 1)),
  ],
  [
    "a size that ends with LF",
    `${CHUNKED}1\na\r\n0\r\n\r\n`,
    CHUNKS,
  ],
  [
    "CR within an extension",
    `${CHUNKED}1;a\rb\r\na\r\n0\r\n\r\n`,
    CHUNKS,
  ],
  [
    "a chunk longer than its size",
    `${CHUNKED}1\r\nab\r\n0\r\n\r\n`,
    frames(head(), (stream) => frame("DATA", 0, stream, "ab".repeat(20), 1)),
  ],
  [
    "a chunk without an end",
    `${CHUNKED}1\r\na1\r\nb\r\n0\r\n\r\n`,
    CHUNKS,
  ],
  [
    "chunks that are cut",
    thenEnd(`${CHUNKED}2\r\nab\r\n`),
    (stream) => thenEnd(frames(head(), data("ab"))(stream) as Buffer),
  ],
  [
    "a padding longer than its frame",
    FRAMES,
    frames(head(), (stream) => frame("DATA", 8, stream, "\xffab")),
  ],
  ["a body before its head", FRAMES, frames(data("ab", END_STREAM))],
  [
    "a body without a stream",
    FRAMES,
    frames((stream) => frame("DATA", 0, stream + 2, "ab")),
  ],
  [
    "headers that another frame breaks",
    FRAMES,
    frames(
      (stream) =>
        frame("HEADERS", 0, stream, headerBlock([[":status", "200"]])),
      data("ab"),
    ),
  ],
  // Trailers.
  [
    "trailers that are too long",
    `${CHUNKED}0\r\na: ${LONG}\r\n\r\n`,
    frames(head(), data("ab"), headOf([["a", LONGER]], END_STREAM)),
  ],
  [
    "endless trailers",
    endless(`${CHUNKED}0\r\n`, `a: ${"b".repeat(500)}\r\n`.repeat(20)),
    { why: "a block is endless or not, whichever it is" },
  ],
  ["a folded trailer", `${CHUNKED}0\r\n a: b\r\n\r\n`, LINES],
  ["a trailer without a colon", `${CHUNKED}0\r\na\r\n\r\n`, LINES],
  [
    "a status in a trailer",
    { why: "a trailer has no status line" },
    frames(head(), data("ab"), headOf([[":status", "200"]], END_STREAM)),
  ],
  // The connection.
  [
    "a reset",
    (socket) => socket.resetAndDestroy(),
    frames((stream) => frame("RST_STREAM", 0, stream, uint32(2))),
  ],
  [
    "a reset within the body",
    (socket) =>
      void socket.write(
        `${HEAD}content-length: 4\r\n\r\nab`,
        () => setImmediate(() => socket.resetAndDestroy()),
      ),
    frames(
      head(),
      data("ab"),
      (stream) => frame("RST_STREAM", 0, stream, uint32(2)),
    ),
  ],
  [
    "an end that gives an error",
    thenEnd(""),
    frames((stream) => frame("GOAWAY", 0, 0, uint32(stream, 2))),
  ],
  [
    "a promise of what nobody asked for",
    FRAMES,
    frames((stream) =>
      frame(
        "PUSH_PROMISE",
        END_HEADERS,
        stream,
        Buffer.concat([uint32(2), headerBlock([[":path", "/"]])]),
      )
    ),
  ],
  [
    "a setting that is out of range",
    FRAMES,
    frames(() => frame("SETTINGS", 0, 0, "\0\x04\xff\xff\xff\xff")),
  ],
  [
    "a window that is too large",
    FRAMES,
    frames((stream) => frame("WINDOW_UPDATE", 0, stream, uint32(2 ** 31 - 1))),
  ],
  [
    "a ping of a wrong size",
    FRAMES,
    frames(() => frame("PING", 0, 0, "ab")),
  ],
];

const isNode = currentRuntime() === "node";
const REFUSED = /^Error: Cannot reach https?:/;
const GOOD: Frames = body(["content-length", "2"]);

for (const [what, http1, http2] of KINDS) {
  if (!isMissing(http1)) {
    test(`A response over HTTP/1.1 is refused: ${what}`, () =>
      withAnswers([http1, `${OK}ab`], async (transport, { open }) => {
        const sent = transport.send(get("/x")).then(text);
        await assert.rejects(inTime("the failure", sent), REFUSED);
        await until("its connection is closed", () => open.size === 0);
        assert.equal(await text(await transport.send(get("/x"))), "ab");
      }));
  }
  if (isMissing(http2) || !isNode) continue;
  const isRefused = typeof http2 === "function";
  test(`A response over HTTP/2 is ${isRefused ? "refused" : "read without"}: ${what}`, () =>
    withFrames([isRefused ? http2 : http2.frames, GOOD], async (transport) => {
      const ask = () => transport.send(get("/x", { mayPause: true }));
      if (isRefused) {
        const sent = ask().then(text);
        await assert.rejects(inTime("the failure", sent), REFUSED);
      } else {
        const response = await inTime("the answer", ask());
        assert.equal(response.headers[http2.name], undefined);
        assert.equal(await text(response), "ab");
      }
      assert.equal(await inTime("the next answer", ask().then(text)), "ab");
    }));
}

function isMissing(given: object | string): given is Missing {
  return typeof given === "object" && "why" in given;
}
