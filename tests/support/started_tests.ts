/**
 * Preloaded into Node's test processes: writes the name of each test to standard
 * error when it starts, so that the runner can name the test that never ended, and
 * ends a process whose tests are over but which a failed one left something open in.
 *
 * @module
 */

import { writeSync } from "node:fs";
import process from "node:process";
import { after, afterEach, beforeEach } from "node:test";

/** Number of attempts to write a name, and the pause between two of them. */
const ATTEMPTS = 200;
const PAUSE_MS = 5;

const pause = new Int32Array(new SharedArrayBuffer(4));

beforeEach((test) => {
  const line = `test started: ${"name" in test ? test.name : ""}\n`;
  // Synchronous: a test that never returns would keep back a queued write. The
  // pipe is full for a moment when the runner is slow to read; a name that still
  // does not fit is left out, since it only serves the message.
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      writeSync(2, line);
      return;
    } catch (error) {
      if ((error as { readonly code?: string }).code !== "EAGAIN") throw error;
      Atomics.wait(pause, 0, 0, PAUSE_MS);
    }
  }
});

/** Time that a process has to end by itself after a failed test. */
const END_LIMIT_MS = 5_000;

let hasFailed = false;

afterEach((test) => {
  if ("passed" in test && !test.passed) hasFailed = true;
});

after(() => {
  if (!hasFailed) return;
  setTimeout(() => {
    // Lets the reporter write what it knows, as at the end of an idle process.
    process.emit("beforeExit", 1);
    setTimeout(() => process.exit(1), END_LIMIT_MS / 10);
  }, END_LIMIT_MS).unref();
});
