import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, gzipSync } from "node:zlib";
import { ResponseStream } from "../../../../core/client/transport/response_stream.ts";
import {
  type HttpResponse,
  OpenRequests,
} from "../../../../core/client/transport/transport.ts";
import { textOf } from "../../../../core/client/transport/chunk_queue.ts";
import { VirtualClock } from "../../../../dev/testing/virtual_clock.ts";
import { inTime } from "../../../support/in_time.ts";
import { LeakGuard } from "../../../support/leaks.ts";

/** A stream whose response the test delivers. */
function openStream() {
  const response = Promise.withResolvers<HttpResponse>();
  const requests = new OpenRequests();
  const { signal } = new AbortController();
  const stream = new ResponseStream({
    origin: "http://127.0.0.1:1",
    signal,
    requests,
    resolve: response.resolve,
    reject: response.reject,
  });
  stream.onRequestStart({ pause() {}, resume() {}, abort() {} });
  return { requests, response: response.promise, stream };
}

test("A request that fails leaves nothing, before its response or within it", async () => {
  const guard = new LeakGuard();
  for (const isBegun of [false, true]) {
    const { requests, response, stream } = openStream();
    if (isBegun) {
      stream.onResponseStart({ status: 200, headers: {}, keepsAlive: true });
      const { body } = await response;
      stream.onResponseError(new Error("reset"));
      await assert.rejects(textOf(body), /Cannot reach .*reset$/);
    } else {
      stream.onResponseError(new Error("reset"));
      await assert.rejects(response, /Cannot reach .*reset$/);
    }
    await inTime("no request is open", requests.idle(), 5_000);
  }
  guard.check(new VirtualClock());
});

test("A compressed response that breaks ends its reader with the reason", async () => {
  const { response, stream } = openStream();
  stream.onResponseStart({
    status: 200,
    headers: { "content-encoding": "gzip" },
    keepsAlive: true,
  });
  const finishFlush = constants.Z_SYNC_FLUSH;
  stream.onResponseData(gzipSync("a line\n", { finishFlush }));
  const { body } = await response;
  const read = inTime("the end", textOf(body), 5_000);
  stream.onResponseError(new Error("reset"));
  await assert.rejects(read, /Cannot reach .*reset$/);
});

test("A response with another coding than gzip is given as it is", async () => {
  const { response, stream } = openStream();
  const headers = { "content-encoding": "br", "content-length": "2" };
  const head = { status: 200, headers, keepsAlive: true };
  stream.onResponseStart(head, new TextEncoder().encode("ab"));
  stream.onResponseEnd();
  assert.deepEqual((await response).headers, headers);
  assert.equal(await textOf((await response).body), "ab");
});

for (const lends of [false, true]) {
  const what = lends ? "lends its chunks" : "gives its chunks away";
  test(`A compressed response that is left ends its connection, which ${what}`, async () => {
    const response = Promise.withResolvers<HttpResponse>();
    const ended = Promise.withResolvers<void>();
    const stream = new ResponseStream({
      origin: "http://127.0.0.1:1",
      signal: undefined,
      requests: new OpenRequests(),
      resolve: response.resolve,
      reject: response.reject,
    });
    stream.onRequestStart({
      pause() {},
      resume() {},
      abort: () => ended.resolve(),
      ...(lends && { release() {} }),
    });
    stream.onResponseStart({
      status: 200,
      headers: { "content-encoding": "gzip" },
      keepsAlive: false,
    });
    // A part of a stream that goes on, and sends nothing more for now.
    const finishFlush = constants.Z_SYNC_FLUSH;
    stream.onResponseData(gzipSync("a line\n", { finishFlush }));
    const { body } = await response.promise;
    const left = async () => {
      for await (const chunk of body) {
        assert.equal(new TextDecoder().decode(chunk), "a line\n");
        break;
      }
    };
    await inTime("the reader has left", left(), 10_000);
    await inTime("the connection ends", ended.promise, 10_000);
  });
}
