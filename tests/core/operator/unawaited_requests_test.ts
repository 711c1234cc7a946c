import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { jsonLogger } from "../../../core/logger.ts";
import { logUnawaited } from "../../../core/operator/unawaited_requests.ts";

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
