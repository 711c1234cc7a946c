import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import {
  type ResponseHead,
  ResponseParser,
} from "../../../../core/client/transport/response_parser.ts";

/** Result of parsing a response. */
interface Read {
  readonly head: ResponseHead | undefined;
  readonly body: string;
  readonly isComplete: boolean;
}

/** Parses a response that arrives in parts, and then the end of the connection. */
function readParts(parts: readonly Uint8Array[]): Read {
  const reader = new ResponseParser();
  const around = Buffer.from("<>");
  const body = parts.map((part) => {
    const memory = Buffer.concat([around, part, around]);
    const end = reader.read(memory, 2, memory.length - 2);
    assert.ok(end >= 2 && end <= memory.length - 2);
    for (const place of [0, memory.length - 2]) {
      assert.deepEqual(memory.subarray(place, place + 2), around);
    }
    return memory.toString("latin1", 2, end);
  });
  const { isComplete } = reader;
  reader.finish();
  return { head: reader.head, body: body.join(""), isComplete };
}

/** Result without the form of its head. */
function plain({ head, ...others }: Read): Read {
  if (head === undefined) return { head, ...others };
  const { status, headers, keepsAlive } = head;
  return { head: { status, headers, keepsAlive }, ...others };
}

function read(text: string): Read {
  return readParts([Buffer.from(text, "latin1")]);
}

/** Splits bytes at some positions. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))]
    .sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) =>
    bytes.subarray(ends[index - 1] ?? 0, end)
  );
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`;

const TOKEN = fc.stringMatching(/^[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,12}$/);
const BODY = fc.array(fc.string({ minLength: 1, maxLength: 40 }), {
  maxLength: 8,
}).map((parts) => parts.map((part) => part.replace(/[^\0-\xff]/gu, "?")));
const EXTENSION = fc.constantFrom(
  "",
  ";a",
  ";a\tb",
  " ; a=b",
  ';a="b c";d',
  "\t",
);

/** Response as it is sent, and its expected content. */
interface Answer {
  readonly sent: string;
  readonly head: ResponseHead;
  readonly body: string;
  readonly isComplete: boolean;
}

const ANSWER: fc.Arbitrary<Answer> = fc.record({
  status: fc.integer({ min: 200, max: 599 })
    .filter((status) => status !== 204 && status !== 304),
  headers: fc.uniqueArray(
    fc.tuple(
      TOKEN.map((name) => `x-${name}`),
      fc.stringMatching(/^([!-~]([\t -~]{0,20}[!-~])?)?$/),
    ),
    { maxLength: 5, selector: ([name]) => name.toLowerCase() },
  ),
  interim: fc.constantFrom("", "100 Continue", "103 Early Hints", "199 Other"),
  framing: fc.constantFrom("length", "chunked", "until close"),
  parts: BODY,
  extension: EXTENSION,
  upper: fc.boolean(),
  trailer: fc.boolean(),
}).map((answer) => {
  const { framing, parts, status } = answer;
  const body = parts.join("");
  const own: [string, string][] = framing === "length"
    ? [["Content-Length", String(body.length)]]
    : framing === "chunked"
    ? [["Transfer-Encoding", "Chunked"]]
    : [];
  const headers = [...own, ...answer.headers];
  // Most servers send no space at the end of a line.
  const space = answer.upper ? " " : "";
  const lines = headers.map(([name, value]) => `${name}: ${value}${space}\r\n`);
  const chunks = parts.map((part) => {
    const size = part.length.toString(16);
    const digits = answer.upper ? size.toUpperCase() : `00${size}`;
    return `${digits}${answer.extension}\r\n${part}\r\n`;
  });
  const trailer = answer.trailer ? "x-trailer: yes\r\n" : "";
  return {
    sent: [
      answer.interim && `HTTP/1.1 ${answer.interim}\r\nlink: x\r\n\r\n`,
      `HTTP/1.1 ${status} ${answer.upper ? "Any reason" : ""}\r\n`,
      ...lines,
      "\r\n",
      ...(framing === "chunked"
        ? [...chunks, `0${answer.extension}\r\n${trailer}\r\n`]
        : parts),
    ].join(""),
    head: {
      status,
      headers: Object.fromEntries(
        headers.map(([name, value]) => [name.toLowerCase(), value]),
      ),
      keepsAlive: true,
    },
    body,
    isComplete: framing !== "until close",
  };
});

test("ResponseParser parses a response however it is split", () => {
  fc.assert(fc.property(
    ANSWER,
    fc.array(fc.nat(), { maxLength: 30, size: "max" }),
    ({ sent, ...expected }, places) => {
      const bytes = Buffer.from(sent, "latin1");
      assert.deepEqual(plain(readParts([bytes])), expected);
      assert.deepEqual(plain(readParts(cut(bytes, places))), expected);
      const single = Array.from(bytes, (byte) => Uint8Array.of(byte));
      assert.deepEqual(plain(readParts(single)), expected);
    },
  ));
});

test("ResponseParser treats a damaged response the same however it is split", () => {
  const outcome = (parts: readonly Uint8Array[]) => {
    try {
      return plain(readParts(parts));
    } catch (error) {
      assert.ok(error instanceof Error);
      assert.match(error.message, /^Cannot read a response: /);
      return error.message;
    }
  };
  fc.assert(fc.property(
    ANSWER,
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 }),
    fc.array(fc.nat(), { maxLength: 30, size: "max" }),
    ({ sent }, damages, places) => {
      const bytes = Buffer.from(sent, "latin1");
      for (const [place, byte] of damages) bytes[place % bytes.length] = byte;
      assert.deepEqual(outcome(cut(bytes, places)), outcome([bytes]));
    },
  ));
});

test("ResponseParser ignores bytes after a complete response", () => {
  const answers = [
    `${HEAD}content-length: 2\r\n\r\nok`,
    `${CHUNKED}2\r\nok\r\n0\r\n\r\n`,
  ];
  for (const answer of answers) {
    const { body, isComplete } = read(`${answer}HTTP/1.1 500 No\r\n\r\n`);
    assert.equal(body, "ok");
    assert.equal(isComplete, true);
  }
});

test("ResponseParser reads no body for statuses without one", () => {
  for (
    const head of [
      "HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 204 No Content\r\ncontent-length: 7\r\n\r\n",
      "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n",
      `${HEAD}content-length: 0\r\n\r\n`,
    ]
  ) {
    const { body, isComplete } = read(`${head}no body`);
    assert.equal(body, "");
    assert.equal(isComplete, true);
  }
});

test("ResponseParser finds headers that matter in heads of any form", () => {
  const length = "Content-Length: 0\r\n";
  const matters = {
    "Content-Encoding": "gzip",
    "Connection": "close",
    "Warning": '299 - "old"',
  };
  for (const [name, value] of Object.entries(matters)) {
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
      const line = `${spelling}: ${value}\r\n`;
      for (const lines of [line + length, length + line]) {
        const { head } = read(`${HEAD}a: b\r\n${lines}\r\n`);
        assert.equal(head?.headers[name.toLowerCase()], value);
        assert.equal(head?.isPlain, undefined, lines);
      }
    }
  }
  const kept = "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n";
  const { head } = read(`${HEAD}Warn: no\r\n${length}${kept}\r\n`);
  assert.equal(head?.isPlain, true);
  assert.deepEqual(head?.headers, {
    ...{ warn: "no", "content-length": "0" },
    ...{ connection: "keep-alive", "keep-alive": "timeout=5" },
  });
});

test("ResponseParser joins repeated headers, whatever their name", () => {
  const { head } = read(
    `${HEAD}X-A: one\r\nx-a:two\r\nconstructor: \t3 \r\n__proto__: 4\r\n\r\n`,
  );
  assert.equal(head?.headers["x-a"], "one, two");
  assert.equal(head?.headers["constructor"], "3");
  assert.deepEqual(Object.keys(head?.headers ?? {}), [
    "x-a",
    "constructor",
    "__proto__",
  ]);
});

test("ResponseParser keeps a connection only if another response may follow", () => {
  const keeps = (text: string) => {
    const parser = new ResponseParser();
    parser.read(Buffer.from(text, "latin1"));
    parser.finish();
    return parser.keepsAlive;
  };
  const length = "content-length: 0\r\n";
  assert.equal(keeps(`${HEAD}${length}\r\n`), true);
  assert.equal(keeps(`${HEAD}${length}connection: closed\r\n\r\n`), true);
  assert.equal(keeps(`${HEAD}\r\nbody until the end`), false);
  assert.equal(keeps(`HTTP/1.0 200 OK\r\n${length}\r\n`), false);
  for (const value of ["close", "Close", "keep-alive, close", "close ,x"]) {
    const line = `connection: ${value}\r\n`;
    assert.equal(keeps(`${HEAD}${length}${line}\r\n`), false, value);
  }
});

test("ResponseParser takes no later part of a head for its beginning", () => {
  const parts = ["HTTP/1.1 500 No\r\nx: ", `${HEAD}content-length: 0\r\n\r\n`];
  const { head } = readParts(parts.map((part) => Buffer.from(part)));
  assert.equal(head?.status, 500);
  assert.equal(head?.headers["x"], HEAD.trim());
});

test("ResponseParser reads chunks behind a long head", () => {
  const long = `HTTP/1.1 200 OK\r\nx: ${"y".repeat(8_000)}\r\n`;
  const rest = "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
  assert.equal(read(long + rest).body, "ok");
});

test("ResponseParser joins the chunks of one read in place", () => {
  const reader = new ResponseParser();
  const answer = Buffer.from(`${CHUNKED}3\r\none\r\n4;x=y\r\nfour\r\n2\r\nen`);
  assert.equal(answer.toString("latin1", 0, reader.read(answer)), "onefouren");
  const more = Buffer.from("\r\n1\r\nd\r\n");
  assert.equal(more.toString("latin1", 0, reader.read(more)), "d");
});

const REFUSED: Readonly<Record<string, string>> = {
  "another protocol": "SSH-2.0-OpenSSH_9.6\r\n\r\n",
  "HTTP/2": "HTTP/2 200\r\n\r\n",
  "HTTP/1.2": "HTTP/1.2 200 OK\r\n\r\n",
  "no status code": "HTTP/1.1 OK\r\n\r\n",
  "a status code of four digits": "HTTP/1.1 2000 OK\r\n\r\n",
  "an empty line first": `\r\n${HEAD}\r\n`,
  "a switch of protocols": "HTTP/1.1 101 Switching\r\n\r\n",
  "lines that end with LF": "HTTP/1.1 200 OK\n\n",
  "CR within a line": `${HEAD}a: b\rc: d\r\n\r\n`,
  "a folded header": `${HEAD}a: b\r\n c\r\n\r\n`,
  "a space before the colon": `${HEAD}a : b\r\n\r\n`,
  "a header without a name": `${HEAD}: b\r\n\r\n`,
  "a header without a colon": `${HEAD}a\r\n\r\n`,
  "a NUL": `${HEAD}a: \0\r\n\r\n`,
  "a head that is too long": `${HEAD}a: ${"b".repeat(16_400)}\r\n\r\n`,
  "a head of the usual form that is too long": `${HEAD}a: ${
    "b".repeat(16_400)
  }\r\ncontent-length: 0\r\n\r\n`,
  "trailers that are too long": `${CHUNKED}0\r\na: ${
    "b".repeat(16_400)
  }\r\n\r\n`,
  "two lengths": `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nab`,
  "the same length twice":
    `${HEAD}content-length: 1\r\ncontent-length: 1\r\n\r\na`,
  "a negative length": `${HEAD}content-length: -1\r\n\r\n`,
  "a hexadecimal length": `${HEAD}content-length: 0x1\r\n\r\na`,
  "a length that is not a safe integer": `${HEAD}content-length: ${
    "9".repeat(16)
  }\r\n\r\n`,
  "a length of chunks":
    `${HEAD}transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n0\r\n\r\n`,
  "another coding": `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  "chunks twice":
    `${HEAD}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  "chunks of HTTP/1.0":
    "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
  "chunks of HTTP/1.0 in capitals":
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
  "a chunk without a size": `${CHUNKED}\r\n`,
  "a chunk with only an extension": `${CHUNKED};a\r\n`,
  "a signed size": `${CHUNKED}+1\r\na\r\n`,
  "a size with another letter": `${CHUNKED}1g\r\na\r\n0\r\n\r\n`,
  "a size with a sign behind it": `${CHUNKED}1-\r\na\r\n0\r\n\r\n`,
  "a size with a prefix": `${CHUNKED}0x1\r\na\r\n`,
  "a size that is not a safe integer": `${CHUNKED}${"f".repeat(14)}\r\n`,
  "a size that ends with LF": `${CHUNKED}1\na\r\n0\r\n\r\n`,
  "CR within an extension": `${CHUNKED}1;a\rb\r\na\r\n0\r\n\r\n`,
  "LF within an extension": `${CHUNKED}1;a\nb\r\na\r\n0\r\n\r\n`,
  "DEL within an extension": `${CHUNKED}1;a\x7fb\r\na\r\n0\r\n\r\n`,
  "a chunk longer than its size": `${CHUNKED}1\r\nab\r\n0\r\n\r\n`,
  "a chunk without an end": `${CHUNKED}1\r\na1\r\nb\r\n0\r\n\r\n`,
  "a folded trailer": `${CHUNKED}0\r\n a: b\r\n\r\n`,
  "a trailer without a colon": `${CHUNKED}0\r\na\r\n\r\n`,
};

for (const [what, answer] of Object.entries(REFUSED)) {
  test(`ResponseParser refuses ${what}`, () => {
    assert.throws(() => read(answer), {
      name: "SyntaxError",
      message: /^Cannot read a response: /,
    });
  });
}

test("ResponseParser refuses an incomplete response", () => {
  const answers = [
    `${HEAD}content-length: 2\r\n\r\nok`,
    `${CHUNKED}2\r\nok\r\n0\r\na: b\r\n\r\n`,
  ];
  for (const answer of answers) {
    for (let length = 0; length < answer.length; length++) {
      assert.throws(() => read(answer.slice(0, length)), {
        name: "Error",
        message:
          /^Cannot read a response: the connection ended within the (head|body)$/,
      });
    }
  }
});

test("ResponseParser refuses endless heads, trailers and extensions", () => {
  const filler = Buffer.from(`a: ${"b".repeat(500)}\r\n`);
  const endless: readonly [string, Buffer][] = [
    [HEAD, filler],
    [HEAD, Buffer.from("a")],
    ["", Buffer.from("HTTP/1.1 100 Continue\r\n\r\n")],
    [`${CHUNKED}0\r\n`, filler],
    [`${CHUNKED}1;`, Buffer.from("a")],
    [CHUNKED, Buffer.from("0")],
  ];
  for (const [start, more] of endless) {
    const reader = new ResponseParser();
    reader.read(Buffer.from(start));
    assert.throws(() => {
      for (let sent = 0; sent < 1 << 20; sent += more.length) {
        reader.read(Buffer.from(more));
      }
    }, { name: "SyntaxError" });
  }
});

test("ResponseParser does not quote an invalid header, which may be secret", () => {
  assert.throws(
    () => read(`${HEAD}set-cookie: secret\0\r\n\r\n`),
    (error: Error) => !error.message.includes("secret"),
  );
});

test("ResponseParser reads nothing behind the end of what has arrived", () => {
  const sent = `${HEAD}content-length: 2\r\n\r\nab`;
  for (let to = 0; to < sent.length; to++) {
    const parser = new ResponseParser();
    // The memory still has what was read into it before.
    const memory = Buffer.from(sent + sent, "latin1");
    parser.read(memory, 0, to);
    const isHead = to >= sent.length - 2;
    assert.equal(parser.head !== undefined, isHead, `${to} bytes`);
    assert.equal(parser.isComplete, false, `${to} bytes`);
  }
});
