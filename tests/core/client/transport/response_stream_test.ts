import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, gzipSync } from "node:zlib";
import { ResponseStream } from "../../../../core/client/transport/response_stream.ts";
import {
  type HttpResponse,
  OpenRequests,
} from "../../../../core/client/transport/transport.ts";
import { inTime } from "../../../support/in_time.ts";

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
