import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { ApiError, jsonLogger } from "@coracle/operator/client";
import { uncaughtErrors } from "../../dev/cli/dev_run.ts";
import { logUnawaited } from "../../core/operator/unawaited_requests.ts";
import { inTime } from "../support/in_time.ts";

test("coracle dev reports a request not awaited once, by the log or by itself", () => {
  const said: string[] = [];
  const uncaught = uncaughtErrors({
    colors: false,
    out: () => {},
    say: (text) => said.push(text),
    interrupts: () => new AbortController().signal,
  });
  const lines: string[] = [];
  const log = jsonLogger({ write: (line) => lines.push(line) });
  const report = process.listeners("unhandledRejection").at(-1)!;
  const error = new ApiError("Cannot create it", { status: 422 });
  const rejected = Promise.resolve();
  try {
    report(error, rejected);
    assert.match(said.join(), /^A request failed that nobody waits for: /);
    const end = logUnawaited(log);
    report(error, rejected);
    end();
    assert.equal(said.length, 1);
  } finally {
    uncaught.remove();
  }
});

test("coracle dev fails by the first error that nobody handled, until its end", async () => {
  const events = ["uncaughtException", "unhandledRejection"] as const;
  const counts = () =>
    events.map((event) => process.listenerCount(event as "uncaughtException"));
  const before = counts();
  for (const event of events) {
    const uncaught = uncaughtErrors({
      colors: false,
      out: () => {},
      say: (text) => assert.fail(text),
      interrupts: () => new AbortController().signal,
    });
    const report = process.listeners(event as "uncaughtException").at(-1) as (
      error: Error,
    ) => void;
    report(new Error(event));
    report(new Error("a later one"));
    uncaught.remove();
    const failed = inTime("it fails", uncaught.promise);
    await assert.rejects(failed, { message: event });
    assert.deepEqual(counts(), before);
  }
});
