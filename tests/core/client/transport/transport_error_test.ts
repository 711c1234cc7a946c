import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamRefusedError } from "@coracle/operator/client";
import { connectionError } from "../../../../core/client/transport/transport_error.ts";
import { OpenRequests } from "../../../../core/client/transport/transport.ts";

const ORIGIN = "https://api";

test("connectionError names the first line and the code of its innermost cause", () => {
  const coded = (message: string) =>
    Object.assign(new Error(message), { code: "ECONNRESET" });
  const cases: readonly (readonly [unknown, string])[] = [
    [coded("the peer left"), "ECONNRESET the peer left"],
    [coded("read ECONNRESET"), "read ECONNRESET"],
    [coded(""), "ECONNRESET"],
    [new Error("one\ntwo"), "one"],
    [
      new TypeError("fetch failed", {
        cause: new Error("request", { cause: coded("reset") }),
      }),
      "ECONNRESET reset",
    ],
    ["text", "text"],
  ];
  for (const [cause, received] of cases) {
    const error = connectionError(ORIGIN, cause);
    assert.equal(
      error.message,
      `Cannot reach https://api: the connection failed: received ${received}`,
    );
    assert.equal(error.cause, cause);
  }
});

test("connectionError ends at an error that is its own cause", () => {
  const error = new Error("loop");
  error.cause = error;
  assert.match(connectionError(ORIGIN, error).message, /received loop$/);
});

test("StreamRefusedError keeps its status with another body", () => {
  const refused = new StreamRefusedError(ORIGIN, { status: 403, body: "a" });
  const other = refused.withBody("b");
  assert.equal(other.message, refused.message);
  assert.equal(other.status, 403);
  assert.equal(other.body, "b");
});

test("OpenRequests is idle when the last request has ended", async () => {
  const requests = new OpenRequests();
  await requests.idle();
  const request = { abort() {} };
  const [first, second] = [requests.add(request), requests.add(request)];
  let isIdle = false;
  const idle = requests.idle().then(() => isIdle = true);
  requests.delete(first);
  requests.delete(first);
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  assert.equal(isIdle, false);
  requests.delete(second);
  await idle;
});
