/**
 * Responses of a server that the test writes byte by byte: which are read, which are
 * refused, and which connections serve another request.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { test } from "node:test";
import { constants, gzipSync } from "node:zlib";
import type { HttpRequest } from "@coracle/operator/client";
import type { HttpTransport } from "../../../../core/client/transport/transport.ts";
import {
  type Answer,
  CHUNKED,
  HEAD,
  OK,
  thenEnd,
  withAnswers,
} from "../../../support/answering_peer.ts";
import { inTime } from "../../../support/in_time.ts";
import { get, testEachRequest, text } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

/** Sends a request and reads its response. */
async function read(
  transport: HttpTransport,
  request: HttpRequest = get("/x"),
): Promise<string> {
  return await inTime(
    "the response",
    transport.send(request).then(text),
  );
}

/** Writes the parts of an answer one by one. */
function inParts(...parts: readonly string[]): Answer {
  return (socket) => {
    const [next, ...others] = parts;
    if (next === undefined) return;
    socket.write(
      next,
      "latin1",
      () =>
        setTimeout(
          () => (inParts(...others) as (socket: Socket) => void)(socket),
          5,
        ),
    );
  };
}

const READ: Readonly<Record<string, readonly [Answer, string]>> = {
  "one that arrives byte by byte": [inParts(...`${OK}ab`), "ab"],
  "chunks with extensions and trailers": [
    `${CHUNKED}3;a=b\r\none\r\n4\r\nfour\r\n0\r\nx-trailer: yes\r\n\r\n`,
    "onefour",
  ],
  "chunks that are cut anywhere": [
    inParts(CHUNKED, "3\r", "\non", "e\r\n", "4\r\nfou", "r\r\n0", "\r\n\r\n"),
    "onefour",
  ],
  "an interim response before it": [
    `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}ab`,
    "ab",
  ],
  "a body that ends with the connection": [thenEnd(`${HEAD}\r\nab`), "ab"],
  "a body of HTTP/1.0": [thenEnd("HTTP/1.0 200 OK\r\n\r\nab"), "ab"],
  "a status without a body": [`HTTP/1.1 204 No Content\r\n\r\n`, ""],
  "an empty body": [`${HEAD}content-length: 0\r\n\r\n`, ""],
  "a body whose length is right and whose connection ends": [
    thenEnd(`${HEAD}content-length: 2\r\nconnection: close\r\n\r\nab`),
    "ab",
  ],
};
for (const [what, [answer, body]] of Object.entries(READ)) {
  testEachRequest(
    `A response is read: ${what}`,
    (get) =>
      withAnswers([answer], async (transport) => {
        assert.equal(await read(transport, get("/x")), body);
      }),
  );
}

const CUT: Readonly<Record<string, string>> = {
  "a length": `${HEAD}content-length: 4\r\n\r\nab`,
  "a length and a close":
    `${HEAD}content-length: 4\r\nconnection: close\r\n\r\nab`,
  "chunks": `${CHUNKED}2\r\nab\r\n`,
  "chunks and a close":
    `${HEAD}connection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n`,
};
for (const [what, answer] of Object.entries(CUT)) {
  testEachRequest(
    `A body that is cut gives what came, and then fails: ${what}`,
    (get) =>
      withAnswers([thenEnd(answer)], async (transport) => {
        const { body, status } = await transport.send(get("/x"));
        assert.equal(status, 200);
        const chunks = body[Symbol.asyncIterator]();
        const { value } = await chunks.next();
        assert.equal(new TextDecoder().decode(value), "ab");
        await assert.rejects(chunks.next(), /^Error: Cannot reach http:/);
      }),
  );
}

test("A response without an end of its head fails with the connection", () =>
  withAnswers(["", HEAD, OK.slice(0, -1)].map(thenEnd), async (transport) => {
    for (let i = 0; i < 3; i++) {
      await assert.rejects(read(transport), /^Error: Cannot reach http:/);
    }
  }));

testEachRequest(
  "The head is given that arrives together with a broken body",
  (get) =>
    withAnswers([`${CHUNKED}no size`], async (transport) => {
      const response = await transport.send(get("/x"));
      assert.equal(response.status, 200);
      await assert.rejects(text(response), /^Error: Cannot reach http:/);
    }),
);

test("An error shows nothing of a response that cannot be parsed", () => {
  const answers = [
    `${HEAD}set-cookie: secret\0\r\n\r\n`,
    `${CHUNKED}1\r\nasecret\r\n`,
    "secret\r\n\r\n",
  ];
  return withAnswers(answers, async (transport) => {
    for (const _ of answers) {
      const error = await read(transport).then(() => assert.fail(), (e) => e);
      let shown = "";
      for (let next = error; next instanceof Error; next = next.cause) {
        shown += `${next.stack} ${JSON.stringify({ ...next })}`;
      }
      assert.match(shown, /Cannot reach/);
      assert.doesNotMatch(shown, /secret/);
    }
  });
});

test("Repeated headers are joined, whatever their name", () =>
  withAnswers([
    `${HEAD}X-A: one\r\nx-a:two\r\nconstructor: \t3 \r\n__proto__: 4\r\ncontent-length: 0\r\n\r\n`,
  ], async (transport) => {
    const { headers } = await transport.send(get("/x"));
    assert.equal(headers["x-a"], "one, two");
    assert.equal(headers["constructor"], "3");
    assert.deepEqual(Object.keys(headers), [
      "x-a",
      "constructor",
      "__proto__",
      "content-length",
    ]);
  }));

const GZIP = `${HEAD}content-encoding: gzip\r\n`;
/** The begin of a compressed body that goes on. */
const PACKED_LINE = gzipSync("a line\n", {
  finishFlush: constants.Z_SYNC_FLUSH,
});

testEachRequest(
  "A compressed body is given as it arrives, and ended by its reader",
  (get) =>
    withAnswers([(socket) => {
      socket.write(`${GZIP}\r\n`);
      socket.write(PACKED_LINE);
    }], async (transport, { open }) => {
      const { body, headers } = await transport.send(get("/x"));
      assert.equal(headers["content-encoding"], undefined);
      for await (const chunk of body) {
        assert.equal(new TextDecoder().decode(chunk), "a line\n");
        break;
      }
      await until("its connection ends", () => open.size === 0);
    }),
);

test("A compressed body that breaks ends its reader with the reason", () =>
  withAnswers([(socket) => {
    socket.write(`${GZIP}content-length: 1000\r\n\r\n`);
    socket.write(
      PACKED_LINE,
      () => setImmediate(() => socket.resetAndDestroy()),
    );
  }], async (transport) => {
    await assert.rejects(read(transport), /^Error: Cannot reach http:/);
  }));

const NOT_GZIP = {
  "another header": "ab",
  "no end": gzipSync("a line\n").subarray(0, 20).toString("latin1"),
};
for (const [what, packed] of Object.entries(NOT_GZIP)) {
  testEachRequest(
    `A compressed body that is no gzip fails: ${what}`,
    (get) =>
      withAnswers(
        [`${GZIP}content-length: ${packed.length}\r\n\r\n${packed}`],
        (transport) =>
          assert.rejects(
            read(transport, get("/x")),
            /^Error: Cannot read a response: its body is no valid gzip: received /,
          ),
      ),
  );
}

testEachRequest("The signal ends a compressed body that has arrived", (get) => {
  const packed = gzipSync(new Uint8Array(16 << 20));
  const head = `${GZIP}content-length: ${packed.length}\r\n\r\n`;
  const answer = Buffer.concat([Buffer.from(head), packed]);
  return withAnswers([answer], async (transport) => {
    const reader = new AbortController();
    const { signal } = reader;
    const { body } = await transport.send(get("/x", { signal }));
    const reason = new Error("the reader left");
    await assert.rejects(
      inTime(
        "the body ends",
        (async () => {
          for await (const _chunk of body) reader.abort(reason);
        })(),
      ),
      reason,
    );
  });
});

test("A body with another coding than gzip is given as it is", () =>
  withAnswers([
    `${HEAD}content-encoding: br\r\ncontent-length: 2\r\n\r\nab`,
  ], async (transport) => {
    const response = await transport.send(get("/x"));
    assert.equal(response.headers["content-encoding"], "br");
    assert.equal(await text(response), "ab");
  }));

test("A connection serves requests one after the other", () => {
  const bodies = ["ab", "cd", "ef"];
  return withAnswers(
    bodies.map((body) => OK + body),
    async (transport, peer) => {
      for (const body of bodies) assert.equal(await read(transport), body);
      assert.equal(peer.connections, 1);
    },
  );
});

test("A connection serves another request after an error response", () =>
  withAnswers([
    "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nab",
    `${OK}cd`,
  ], async (transport, peer) => {
    assert.equal(await read(transport), "ab");
    assert.equal(await read(transport), "cd");
    assert.equal(peer.connections, 1);
  }));

/** Answers after which a connection serves no further request. */
const LAST: Readonly<Record<string, Answer>> = {
  "it says so": `${HEAD}content-length: 2\r\nconnection: close\r\n\r\nab`,
  "it says so among others":
    `${HEAD}content-length: 2\r\nconnection: x, Close\r\n\r\nab`,
  "it is kept for a second only":
    `${HEAD}content-length: 2\r\nkeep-alive: timeout=1\r\n\r\nab`,
  "it is of HTTP/1.0": "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab",
  "more bytes follow": `${OK}abcdef`,
  "another response follows": `${OK}ab${OK}XX`,
};
for (const [why, answer] of Object.entries(LAST)) {
  test(`A connection serves no further request if ${why}`, () =>
    withAnswers([answer, `${OK}cd`], async (transport, peer) => {
      assert.equal(await read(transport), "ab");
      assert.equal(await read(transport), "cd");
      assert.equal(peer.connections, 2);
    }));
}

test("A connection that the server closes while it is idle is replaced", () =>
  withAnswers([`${OK}ab`, `${OK}cd`], async (transport, peer) => {
    assert.equal(await read(transport), "ab");
    for (const socket of peer.open) socket.destroy();
    await until("it is closed", () => peer.open.size === 0);
    // The client sees it with the next request, which is not sent in vain.
    const write: HttpRequest = { method: "POST", path: "/x", headers: {} };
    assert.equal(await read(transport, write), "cd");
    assert.equal(peer.requests.length, 2);
  }));

test("An idle connection is closed before the server would close it", () =>
  withAnswers([
    `${HEAD}content-length: 2\r\nkeep-alive: timeout=2\r\n\r\nab`,
  ], async (transport, peer) => {
    assert.equal(await read(transport), "ab");
    assert.equal(peer.open.size, 1);
    await until("it is closed", () => peer.open.size === 0);
  }));

test("An idle connection is closed by bytes that nobody asked for", () =>
  withAnswers([`${OK}ab`, `${OK}cd`], async (transport, peer) => {
    assert.equal(await read(transport), "ab");
    for (const socket of peer.open) socket.write(`${OK}XX`);
    await until("it is closed", () => peer.open.size === 0);
    assert.equal(await read(transport), "cd");
  }));

test("A connection that was refused its body serves no further request", () => {
  const big = "x".repeat(32 << 20);
  const refuse: Answer = (socket) => {
    socket.pause();
    socket.write("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nab");
  };
  return withAnswers([refuse, `${OK}cd`], async (transport, peer) => {
    const write: HttpRequest = {
      method: "POST",
      path: "/x",
      headers: {},
      body: big,
    };
    const response = await inTime("the refusal", transport.send(write));
    assert.equal(response.status, 413);
    assert.equal(await text(response), "ab");
    assert.equal(await read(transport), "cd");
    assert.equal(peer.connections, 2);
  });
});

test("A response that fails leaves nothing of its request", () =>
  withAnswers(
    [thenEnd(""), thenEnd(`${CHUNKED}2\r\nab`)],
    async (transport) => {
      await assert.rejects(read(transport));
      await assert.rejects(read(transport));
      await inTime("nothing is in progress", transport.retire());
    },
  ));
