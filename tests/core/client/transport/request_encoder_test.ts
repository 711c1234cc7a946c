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
