import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ApiError,
  type Middleware,
  type StreamConnection,
  type StreamRequest,
} from "@coracle/operator/client";
import { clientSettings } from "../../../core/client/client_options.ts";
import { openConnection } from "../../../core/client/connection.ts";

const REQUEST: StreamRequest = { path: "/exec", headers: {}, protocols: ["a"] };

/** Opens a WebSocket through middleware; also its requests and closed streams. */
async function connected(...middleware: readonly Middleware[]) {
  const sent: StreamRequest[] = [];
  const closed: number[] = [];
  const transport = {
    send: () => Promise.reject(new Error("Unexpected request")),
    connect: (request: StreamRequest): Promise<StreamConnection> => {
      const number = sent.push(request);
      return Promise.resolve({
        protocol: "a",
        messages: { async *[Symbol.asyncIterator]() {} },
        send: () => Promise.resolve(),
        close() {
          closed.push(number);
          return Promise.resolve();
        },
      });
    },
    close: () => Promise.resolve(),
  };
  const target = { transport };
  const connection = openConnection(target, clientSettings(target, {}))
    .with(middleware);
  const end = await connection.connect(REQUEST)
    .then((stream) => stream.protocol, (error: unknown) => error);
  return { sent, closed, end };
}

test("A WebSocket that middleware answers itself fails with its answer", async () => {
  const answer = (status: number): Middleware => () => () =>
    Promise.resolve({
      status,
      headers: {},
      body: {
        async *[Symbol.asyncIterator]() {
          yield new TextEncoder().encode("not today");
        },
      },
      cancel: () => Promise.resolve(),
    });
  const refused = await connected(answer(403));
  assert.ok(ApiError.is(refused.end) && refused.end.isForbidden);
  for (const status of [101, 200]) {
    const { end, sent } = await connected(answer(status));
    assert.match(
      String(end),
      /^Error: Cannot GET \/exec: middleware must open the WebSocket: received status/,
    );
    assert.equal(sent.length, 0);
  }
});

test("A WebSocket is closed when middleware fails or opens another one", async () => {
  const failing = await connected((next) => async (request) => {
    await next(request);
    throw new Error("after it");
  });
  assert.deepEqual([String(failing.end), failing.closed], [
    "Error: after it",
    [1],
  ]);
  const twice = await connected((next) => async (request) => {
    await next(request);
    return await next(request);
  });
  assert.deepEqual([twice.end, twice.closed], ["a", [1]]);
});

test("A WebSocket gets what middleware changes of its request", async () => {
  const { signal } = new AbortController();
  const changed = {
    path: "/other",
    headers: { "x-one": "1" },
    repeatedHeaders: { "impersonate-group": ["viewers"] },
    signal,
  };
  const { sent, end } = await connected((next) => (request) =>
    next({ ...request, ...changed })
  );
  assert.equal(end, "a");
  const [{ path, headers, repeatedHeaders, signal: given, protocols }] =
    sent as [StreamRequest];
  assert.deepEqual(
    {
      path,
      headers: { "x-one": headers["x-one"] },
      repeatedHeaders,
      protocols,
    },
    {
      path: changed.path,
      headers: changed.headers,
      repeatedHeaders: changed.repeatedHeaders,
      protocols: ["a"],
    },
  );
  assert.equal(given, signal);
});
