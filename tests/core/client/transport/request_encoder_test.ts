import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import type { HttpRequest } from "@coracle/operator/client";
import { openHttpTransport } from "../../../../core/client/transport/open_transport.ts";
import { text } from "../../../support/transport_case.ts";

const READ: HttpRequest = { method: "GET", path: "/x", headers: {} };
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

type Send = (request: HttpRequest) => Promise<string>;

/** Runs a test that sees each request as it was sent, in Latin-1. */
async function withServer(
  run: (send: Send, host: string) => Promise<void>,
  prefix = "",
): Promise<void> {
  let sent = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      sent += data.toString("latin1");
      const [head = "", body] = sent.split("\r\n\r\n", 2);
      const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
      if (body !== undefined && body.length >= length) socket.write(OK);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;
  const transport = await openHttpTransport({
    server: `http://${host}${prefix}`,
  });
  try {
    await run(async (request) => {
      sent = "";
      await text(await transport.send(request));
      return sent;
    }, host);
  } finally {
    await transport.close();
    server.close();
  }
}

test("A request has the headers that it has now", () =>
  withServer(async (send) => {
    const changing: Record<string, string> = { authorization: "one" };
    const frozen = Object.freeze({ authorization: "frozen" });
    for (const token of ["one", "two", "two"]) {
      changing["authorization"] = token;
      const sent = await send({ ...READ, headers: changing });
      assert.match(sent, new RegExp(`\\r\\nauthorization: ${token}\\r\\n`));
    }
    for (let round = 0; round < 2; round++) {
      const sent = await send({ ...READ, headers: frozen });
      assert.match(sent, /\r\nauthorization: frozen\r\n/);
      assert.doesNotMatch(await send(READ), /authorization/);
    }
    for (const [name, value] of Object.entries({ accept: "a", other: "one" })) {
      const sent = await send({ ...READ, headers: { [name]: value } });
      assert.ok(sent.includes(`\r\n${name}: ${value}\r\n`));
    }
  }));

test("A request keeps headers of several lines to itself", () =>
  withServer(async (send) => {
    const request = { ...READ, headers: Object.freeze({ accept: "a" }) };
    const repeatedHeaders = { group: ["one", "two"] };
    for (let round = 0; round < 2; round++) {
      assert.match(
        await send({ ...request, repeatedHeaders }),
        /\r\ngroup: one\r\ngroup: two\r\n/,
      );
      assert.doesNotMatch(await send(request), /group/);
    }
  }));

test("A request is refused that would change the message", () =>
  withServer(async (send) => {
    for (const path of ["/a b", "/a\r\nx: y", "/ä", ""]) {
      await assert.rejects(send({ ...READ, path }), TypeError);
    }
    for (
      const name of [
        ...["TE", "Content-Length", "upgrade", "trailer", "Host"],
        ...["transfer-encoding", "connection"],
      ]
    ) {
      const refused = {
        message: new RegExp(
          `the transport sets this header: received "${name}"$`,
        ),
      };
      const headers = { [name]: "1" };
      await assert.rejects(send({ ...READ, headers }), refused);
      const repeatedHeaders = { [name]: ["1"] };
      await assert.rejects(send({ ...READ, repeatedHeaders }), refused);
    }
    await assert.rejects(
      send({ ...READ, headers: { a: "secret\n" } }),
      (error: Error) => !error.message.includes("secret"),
    );
  }));

test("A request sends Latin-1 in headers as one byte per character", () =>
  withServer(async (send) => {
    const headers = { name: "\xe9" };
    assert.match(await send({ ...READ, headers }), /\r\nname: \xe9\r\n/);
  }));

test("A request is framed by the length of its body in bytes", () =>
  withServer(async (send, host) => {
    const cases: readonly (readonly [
      HttpRequest["method"],
      HttpRequest["body"],
      string,
    ])[] = [
      ["GET", undefined, ""],
      ["DELETE", undefined, ""],
      ["DELETE", "{}", "content-length: 2\r\n"],
      ["POST", undefined, "content-length: 0\r\n"],
      ["PUT", "", "content-length: 0\r\n"],
      ["PATCH", '{"a":"ä€"}', "content-length: 13\r\n"],
      ["PATCH", Uint8Array.of(0, 255, 13), "content-length: 3\r\n"],
    ];
    for (const [method, body = "", framing] of cases) {
      const sent = await send({ ...READ, method, ...(body && { body }) });
      const bytes = new TextDecoder("latin1").decode(
        typeof body === "string" ? new TextEncoder().encode(body) : body,
      );
      assert.equal(
        Buffer.from(sent, "latin1").toString("hex"),
        Buffer.from(
          `${method} /prefix/x HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\naccept-encoding: gzip\r\n${framing}\r\n`,
          "latin1",
        ).toString("hex") +
          Buffer.from(typeof body === "string" ? Buffer.from(body) : body)
            .toString("hex"),
        bytes,
      );
    }
  }, "/prefix"));
