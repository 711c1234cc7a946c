/**
 * Preloaded into Node's test processes: writes the name of each test to standard
 * error when it starts, so that the runner can name the test that never ended.
 *
 * @module
 */

import { writeSync } from "node:fs";
import { beforeEach } from "node:test";

beforeEach((test) => {
  // Synchronous: a test that never returns would keep back a queued write.
  writeSync(2, `test started: ${"name" in test ? test.name : ""}\n`);
});
