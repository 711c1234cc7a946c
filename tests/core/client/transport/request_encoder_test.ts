import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestEncoder } from "../../../../core/client/transport/request_encoder.ts";
import type { HttpRequest } from "../../../../core/client/transport/transport.ts";

const READ: HttpRequest = { method: "GET", path: "/x", headers: {} };

function encoded(encoder: RequestEncoder, request: HttpRequest): string {
  return new TextDecoder().decode(encoder.encode(request));
}

test("RequestEncoder sends the headers that a request has now", () => {
  const encoder = new RequestEncoder("host", "");
  const changing: Record<string, string> = { authorization: "one" };
  const frozen = Object.freeze({ authorization: "frozen" });
  for (const token of ["one", "two", "two"]) {
    changing["authorization"] = token;
    const text = encoded(encoder, { ...READ, headers: changing });
    assert.match(text, new RegExp(`\\r\\nauthorization: ${token}\\r\\n`));
  }
  for (let round = 0; round < 2; round++) {
    const text = encoded(encoder, { ...READ, headers: frozen });
    assert.match(text, /\r\nauthorization: frozen\r\n/);
    assert.doesNotMatch(encoded(encoder, READ), /authorization/);
  }
  for (const [name, value] of Object.entries({ accept: "a", other: "one" })) {
    const headers = { [name]: value };
    const text = encoded(encoder, { ...READ, headers });
    assert.ok(text.includes(`\r\n${name}: ${value}\r\n`));
  }
});

test("RequestEncoder keeps further headers to the request that has them", () => {
  const encoder = new RequestEncoder("host", "");
  const headers = Object.freeze({ accept: "a" });
  const request = { ...READ, headers };
  const text = (extra?: Record<string, string>) =>
    new TextDecoder().decode(encoder.encode(request, extra));
  for (let round = 0; round < 2; round++) {
    assert.match(text({ connection: "close" }), /\r\nconnection: close\r\n/);
    assert.doesNotMatch(text(), /connection/);
    const repeatedHeaders = { group: ["one", "two"] };
    assert.match(
      encoded(encoder, { ...request, repeatedHeaders }),
      /\r\ngroup: one\r\ngroup: two\r\n/,
    );
    assert.doesNotMatch(text(), /group/);
  }
});

test("RequestEncoder refuses what would change the message", () => {
  const encoder = new RequestEncoder("host", "");
  for (const path of ["/a b", "/a\r\nx: y", "/ä", ""]) {
    assert.throws(() => encoder.encode({ ...READ, path }), TypeError);
  }
  for (const name of ["TE", "Content-Length", "upgrade", "trailer"]) {
    const refused = { message: new RegExp(`received "${name}"$`) };
    const headers = { [name]: "1" };
    assert.throws(() => encoder.encode({ ...READ, headers }), refused);
    const repeatedHeaders = { [name]: ["1"] };
    assert.throws(() => encoder.encode({ ...READ, repeatedHeaders }), refused);
  }
  assert.throws(
    () => encoder.encode({ ...READ, headers: { a: "secret\n" } }),
    (error: Error) => !error.message.includes("secret"),
  );
});

test("RequestEncoder sends Latin-1 in headers as one byte per character", () => {
  const request = { ...READ, headers: { name: "\xe9" }, body: "x" };
  const bytes = new RequestEncoder("host", "").encode(request);
  const text = String.fromCharCode(...bytes);
  assert.match(text, /\r\nname: \xe9\r\n[^]*\r\n\r\nx$/);
});

test("RequestEncoder frames each request but a GET without a body", () => {
  const encoder = new RequestEncoder("host", "/prefix");
  const cases:
    readonly (readonly [HttpRequest["method"], string | undefined, string])[] =
      [
        ["GET", undefined, ""],
        ["GET", "ä", "content-length: 2\r\n"],
        ["DELETE", undefined, "content-length: 0\r\n"],
        ["POST", undefined, "content-length: 0\r\n"],
        ["PUT", "", "content-length: 0\r\n"],
      ];
  for (const [method, body, framing] of cases) {
    assert.equal(
      encoded(encoder, { ...READ, method, body }),
      `${method} /prefix/x HTTP/1.1\r\nhost: host\r\naccept-encoding: gzip\r\n${framing}\r\n${
        body ?? ""
      }`,
    );
  }
});
