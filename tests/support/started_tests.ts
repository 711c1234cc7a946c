/**
 * Preloaded into Node's test processes: writes the name of each test to standard
 * error when it starts, so that the runner can name the test that never ended.
 *
 * @module
 */

import { writeSync } from "node:fs";
import { beforeEach } from "node:test";

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
