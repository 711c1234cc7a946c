import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type Client,
  MetricsRegistry,
  silentLogger,
} from "@coracle/operator/core";
import { modulesLoaded } from "../../../core/clock.ts";
import { readLimited } from "../../../core/config/limited_file.ts";
import { openSnapshots } from "../../../core/operator/operator_snapshots.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

test("Virtual clocks wait until the folder of snapshots is opened", async () => {
  const path = temporaryFolder();
  writeText(path, "gadget.snapshot", "");
  const waits: boolean[] = [];
  const clock = new VirtualClock();
  // The time is read in the middle of the opening, for the age of each file.
  clock.wallTime = () => {
    waits.push(modulesLoaded() !== undefined);
    return 0;
  };
  const client = { get: () => Promise.resolve({ metadata: { uid: "a" } }) };
  const snapshot = { path, every: 1_000, exclude: [], resync: false };
  const folder = await openSnapshots({
    cache: { snapshot } as never,
    clock,
    logger: silentLogger,
    metrics: new MetricsRegistry(),
  }, client as unknown as Client);
  assert.notEqual(folder, undefined);
  assert.deepEqual(waits, [true]);
  await folder?.close();
});

test("Virtual clocks wait until a file is read", async () => {
  const file = writeText(temporaryFolder(), "level", "debug");
  const text = readLimited(file, 100);
  assert.notEqual(modulesLoaded(), undefined);
  assert.equal(await text, "debug");
});
