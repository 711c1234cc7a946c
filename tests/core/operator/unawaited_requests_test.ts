import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { jsonLogger } from "../../../core/logger.ts";
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
