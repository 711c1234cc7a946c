import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { FollowedWrites } from "../../../core/controller/run/followed_writes.ts";
import { jsonLogger, silentLogger } from "../../../core/logger.ts";
import { ApiError } from "../../../core/api/api_error.ts";
import {
  logUnawaited,
  unawaitedRequest,
} from "../../../core/operator/unawaited_requests.ts";

test("unawaitedRequest has advice for the error of a request, and no other", () => {
  const refused = new ApiError("Refused", { status: 403 });
  assert.match(unawaitedRequest(refused) ?? "", /write "await" before it /);
  assert.equal(unawaitedRequest(new Error("Refused")), undefined);
});

test("logUnawaited goes on until the last operator of a logger has ended", () => {
  const before = process.listenerCount("unhandledRejection");
  const log = jsonLogger();
  const endFirst = logUnawaited(log);
  const endSecond = logUnawaited(log);
  assert.equal(process.listenerCount("unhandledRejection"), before + 1);
  endFirst();
  assert.equal(process.listenerCount("unhandledRejection"), before + 1);
  endSecond();
  assert.equal(process.listenerCount("unhandledRejection"), before);
});

test("logUnawaited logs requests alone, and leaves other errors to others", () => {
  const lines: string[] = [];
  const end = logUnawaited(jsonLogger({ write: (line) => lines.push(line) }));
  const other = () => {};
  const [listener] = process.listeners("unhandledRejection").slice(-1);
  process.on("unhandledRejection", other);
  try {
    const nobody = Promise.resolve();
    listener?.(new ApiError("Refused", { status: 403 }), nobody);
    assert.match(lines.join(), /A request failed that nobody waits for/);
    listener?.(new Error("of the program"), nobody);
    assert.equal(lines.length, 1);
  } finally {
    process.off("unhandledRejection", other);
    end();
  }
});

test("unawaitedRequest names a write that failed before it was sent", async () => {
  const writes = new FollowedWrites(() => silentLogger, false);
  const error = new TypeError("no name");
  const write = writes.follow(Promise.reject(error), "ctx.apply(Pod)");
  await assert.rejects(write, error);
  assert.match(unawaitedRequest(error) ?? "", /before ctx\.apply\(Pod\) and/);
});
